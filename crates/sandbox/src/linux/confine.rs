//! Confinement: a thread confines itself and starts the program, which inherits the restrictions. The thread then ends, so
//! that nothing else of this process is confined.

use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use holdfast_contract::problem::{Code, Fault};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::linux::calls::{self, FilterOptions, Network};
use crate::linux::group::Group;
use crate::linux::probe;
use crate::linux::spawn::{GATEWAY, RESOLVER};

/// Programs and what they need, world-readable on any system. Missing ones are skipped.
const PROGRAMS: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// Of `/etc` only what programs look up and what holds no secret on any system: the folder as a whole has keys and passwords
/// in it, and a program that runs as root would read them.
const SETTINGS: &[&str] = &[
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/python3",
    "/etc/redhat-release",
    "/etc/resolv.conf",
    "/etc/rpc",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
];

/// The settings of the resolver, which a program with a network of its own kind has instead of this machine's.
const RESOLVER_SETTINGS: &str = "/etc/resolv.conf";

const DEVICES: &[&str] = &["/dev/null", ZERO, "/dev/full", "/dev/random", "/dev/urandom"];

/// Is only read: a mapping of it that can be written is shared memory of any size, which no limit holds.
const ZERO: &str = "/dev/zero";

/// The newest version of Landlock whose rights are known here. What the kernel lacks of them is left out, down to
/// [`crate::linux::probe::MIN_LANDLOCK_ABI`].
const NEWEST: ABI = ABI::V9;

/// What a program may reach, besides the folders that it is given when it starts.
#[derive(Clone, Debug)]
pub struct ProgramAccess {
    /// What it may read and run.
    readable: Vec<PathBuf>,
    network: Network,
    transparent: Option<TransparentNetwork>,
    listening: Option<ListeningPorts>,
}

/// The ports of its loopback that a program may listen on. Connections to them come from this process, by sockets that were made in the
/// namespace of the program and lead nowhere else.
#[derive(Clone, Debug)]
pub struct ListeningPorts {
    /// The ports.
    pub ports: Vec<u16>,
    /// How many connections may be open at a time.
    pub connections: usize,
}

/// Connections that programs make as if they had a network, without a proxy: every address leads to a listener on the loopback of the
/// namespace, and names are looked up at another one.
#[derive(Clone, Debug)]
pub struct TransparentNetwork {
    /// The ports that are listened on. A connection to another one is refused.
    pub ports: Vec<u16>,
    /// The file that programs find as `/etc/resolv.conf`. It names the resolver, at the loopback.
    pub resolver_file: PathBuf,
}

impl ProgramAccess {
    /// The system's programs with what they look up, and these files and folders besides.
    pub fn new(further: &[PathBuf], network: Network) -> Self {
        let usual = PROGRAMS.iter().map(PathBuf::from).filter(|path| path.exists());
        let readable = usual.chain(further.iter().cloned()).collect();
        Self { readable, network, transparent: None, listening: None }
    }

    /// The same, with ports to listen on.
    pub fn listening(mut self, ports: ListeningPorts) -> Self {
        self.listening = Some(ports).filter(|listening| !listening.ports.is_empty());
        self
    }

    /// How many sockets this process needs to connect to the program.
    pub(crate) fn connectors(&self) -> usize {
        let has_loopback = self.network == Network::Gateway;
        self.listening.as_ref().filter(|_| has_loopback).map_or(0, |listening| listening.connections)
    }

    /// The same, with connections that need no proxy.
    pub fn transparent(mut self, network: TransparentNetwork) -> Self {
        self.transparent = Some(network);
        self
    }

    /// What is put where programs look for something else: the source, and where it is found.
    pub(crate) fn substitutes(&self) -> impl Iterator<Item = (&Path, &'static Path)> {
        self.transparent.iter().map(|it| (it.resolver_file.as_path(), Path::new(RESOLVER_SETTINGS)))
    }

    /// The ports of the namespace's loopback that are listened on besides the gateway's.
    pub(crate) fn ports(&self) -> &[u16] {
        self.transparent.as_ref().map(|it| it.ports.as_slice()).unwrap_or_default()
    }

    /// What programs look up in `/etc`, without what is substituted.
    fn settings(&self) -> impl Iterator<Item = &'static str> {
        let own = self.transparent.is_some();
        SETTINGS.iter().copied().filter(move |path| !own || *path != RESOLVER_SETTINGS)
    }

    /// What may be read, apart from what programs look up in `/etc`.
    pub fn readable(&self) -> &[PathBuf] {
        &self.readable
    }

    /// The first of the readable paths that contains this folder, by its path or by another one. A program that reads that path would
    /// read the folder.
    pub fn containing(&self, folder: &Path) -> Option<&Path> {
        let identity = |path: &Path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
        let folder = folder.canonicalize().ok()?;
        let above: Vec<_> = folder.ancestors().filter_map(identity).collect();
        let contains = |path: &&PathBuf| identity(path).is_some_and(|found| above.contains(&found));
        self.readable.iter().find(contains).map(PathBuf::as_path)
    }

    /// Everything that may be read, settings and devices included. Nothing else is visible in a namespace.
    pub(crate) fn visible(&self) -> impl Iterator<Item = &Path> {
        let fixed = self.settings().chain(DEVICES.iter().copied()).map(|path| -> &Path { Path::new(path) });
        self.readable.iter().map(PathBuf::as_path).chain(fixed)
    }

    /// What it has of the network.
    pub(crate) fn network(&self) -> Network {
        self.network
    }

    /// The same without the network: for where there is no namespace to have a gateway in.
    pub(crate) fn without_gateway(&self) -> Self {
        let network = if self.network == Network::Gateway { Network::Closed } else { self.network };
        Self { readable: self.readable.clone(), network, transparent: None, listening: None }
    }

    /// Starts a program in a group. It reaches this, reads and writes these folders, and nothing else. Refused if the machine has no
    /// means to confine it.
    pub(crate) fn start(
        &self,
        mut command: Command,
        folders: &[BorrowedFd<'_>],
        group: &Group,
    ) -> Result<Child, Fault> {
        use std::os::unix::process::CommandExt;

        let report = probe::report();
        if !report.confined {
            return Err(Fault::new(Code::Unconfined, report.notes.join("; ")));
        }
        let id = group.id().as_raw_nonzero().get();
        command.process_group(id);
        let wanted = FilterOptions {
            network: self.network,
            group: Some(id.unsigned_abs()),
            signals_by_group: report.landlock.is_none_or(|version| version < probe::SIGNALS),
        };
        // The program does not inherit this process's environment.
        close_fds::set_fds_cloexec_threadsafe(3, &[]);
        let unconfined = |error: String| Fault::new(Code::Unconfined, error);
        // Compiled first: a thread that is half confined should have nothing left to prepare.
        let filters = calls::filters(&wanted).map_err(unconfined)?;
        std::thread::scope(|scope| {
            let run = || {
                let ruleset = self.ruleset(folders).map_err(|error| unconfined(error.to_string()))?;
                drop_privileges().map_err(|error| unconfined(error.to_string()))?;
                let status = ruleset.restrict_self().map_err(|error| unconfined(error.to_string()))?;
                if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
                    return Err(unconfined("Landlock did not take effect".to_owned()));
                }
                calls::apply(filters).map_err(unconfined)?;
                command.spawn().map_err(|error| {
                    Fault::new(Code::ToolFailed, format!("the program could not be started: {error}"))
                })
            };
            let started = std::thread::Builder::new().name("confined".to_owned()).spawn_scoped(scope, run);
            match started.map(|thread| thread.join()) {
                Ok(Ok(result)) => result,
                Ok(Err(_)) => Err(Fault::new(Code::Internal, "the confined thread panicked")),
                Err(error) => {
                    Err(Fault::new(Code::ToolFailed, format!("no thread could be started: {error}")))
                }
            }
        })
    }

    pub(crate) fn ruleset(&self, folders: &[BorrowedFd<'_>]) -> Result<RulesetCreated, RulesetError> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI::V3))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?;
        if self.network != Network::Open {
            ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
        }
        let mut ruleset = ruleset.create()?;
        if self.network == Network::Gateway {
            let resolver = self.transparent.as_ref().map(|_| RESOLVER);
            for port in [GATEWAY].into_iter().chain(resolver).chain(self.ports().iter().copied()) {
                ruleset = ruleset.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
            }
            for port in self.listening.iter().flat_map(|listening| &listening.ports) {
                ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::BindTcp))?;
            }
        }
        let run = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir;
        let look = AccessFs::ReadFile | AccessFs::ReadDir;
        let programs = self.readable.iter().map(|path| (path.as_path(), run));
        let settings = self.settings().map(|path| (Path::new(path), look));
        let settings = settings.chain(self.substitutes().map(|(source, _)| (source, look)));
        let device = |path: &&'static str| match *path {
            ZERO => (Path::new(ZERO), AccessFs::ReadFile.into()),
            other => (Path::new(other), AccessFs::ReadFile | AccessFs::WriteFile),
        };
        let devices = DEVICES.iter().map(device);
        for (path, access) in programs.chain(settings).chain(devices) {
            ruleset = allow(ruleset, path, access)?;
        }
        // Everything but device nodes, which would bypass the restrictions.
        let all = AccessFs::from_all(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
        for folder in folders {
            ruleset = ruleset.add_rule(PathBeneath::new(*folder, all))?;
        }
        Ok(ruleset)
    }
}

fn allow(
    ruleset: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(handle) = PathFd::new(path) else { return Ok(ruleset) };
    // Rights of folders mean nothing for a file.
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    ruleset.add_rule(PathBeneath::new(handle, access))
}

/// Drops every capability, so that a command run by root has only the rights of an ordinary user who owns root's files.
fn drop_privileges() -> rustix::io::Result<()> {
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )
}
