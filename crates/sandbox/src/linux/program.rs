//! A program from its start to the end of everything that it started: in namespaces of its own where the kernel has them, and otherwise in
//! a group whose leader ends it.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use holdfast_contract::problem::{Code, Fault};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use seccompiler::BpfProgram;

use crate::linux::calls::{self, FilterOptions, Network};
use crate::linux::confine::ProgramAccess;
use crate::linux::group::{Group, Switch, processes_below, processes_of, tasks_below, tasks_of};
use crate::linux::init;
use crate::linux::limits::ProcessLimits;
use crate::linux::mounts::MountView;
use crate::linux::shared_memory;
use crate::linux::spawn::{self, GATEWAY, SpawnPlan, Spawned};
use crate::report::SandboxReport;

/// Where no namespace is, the process waits until its limits are set, and becomes the program.
const BEGIN: &str = r#"read -r _ || exit 125; exec "$@""#;

/// Where a program finds the gateway.
pub fn gateway_address() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, GATEWAY)
}

/// What a program's `/etc/resolv.conf` says: the resolver at its loopback, asked over TCP, because it has no other sockets.
pub fn resolver_settings() -> &'static str {
    "nameserver 127.0.0.1\noptions use-vc timeout:5 attempts:1\n"
}

/// A program to start.
pub struct Program<'a> {
    /// Its name or path, and its arguments.
    pub words: &'a [String],
    /// Its whole environment. `PATH` says where its name is looked for.
    pub environment: &'a [(&'a str, OsString)],
    /// The folder that it starts in.
    pub folder: &'a Path,
    /// A handle on that folder: where another folder has its path by now, nothing starts.
    pub folder_handle: Option<BorrowedFd<'a>>,
    /// What it may read and run, and what it has of the network.
    pub reach: &'a ProgramAccess,
    /// The folders that it may write to: where they are, and handles on them.
    pub writable: &'a [(&'a Path, BorrowedFd<'a>)],
    /// Files and folders in those that stay read-only, where there are namespaces.
    pub read_only: &'a [PathBuf],
    /// What it may use up.
    pub limits: ProcessLimits,
    /// The maximal number of its processes and threads.
    pub tasks: u32,
    /// Whether its standard input is a socket of both directions, and no pipe.
    pub socket: bool,
}

/// A program that runs.
pub struct Running {
    /// Its standard input.
    pub input: OwnedFd,
    /// Its standard output.
    pub output: OwnedFd,
    /// Its standard error.
    pub errors: OwnedFd,
    /// What listens on its loopback, where it has one.
    pub gateway: Option<TcpListener>,
    /// What listens for its connections that need no proxy, where there are any.
    pub transparent: Option<TransparentListeners>,
    /// Sockets of its namespace that are not connected yet, as many as it may have connections to its ports.
    pub connectors: Vec<OwnedFd>,
    /// Its life.
    pub life: ProgramState,
}

/// The listeners of a network without a proxy.
pub struct TransparentListeners {
    /// For requests to look up names, over TCP.
    pub resolver: TcpListener,
    /// For connections. The address of each accepted connection on this side is the one that the program connects to.
    pub connections: Vec<TcpListener>,
}

/// A running program. Dropping it ends the program.
pub struct ProgramState {
    held: ProgramHandle,
    /// Readable when the program has ended.
    handle: OwnedFd,
    bounded: bool,
    tasks: u32,
    memory_bytes: u64,
    /// Shared memory on the machine when it was started.
    shared_before: u64,
}

enum ProgramHandle {
    /// The first process of its namespaces, which leads the group.
    Namespaces(Pid),
    Group(Box<(Child, Group)>),
}

fn failed(error: impl std::fmt::Display) -> Fault {
    Fault::new(Code::ToolFailed, format!("the program could not be started: {error}"))
}

impl Program<'_> {
    /// Starts it, as far as the machine of this report can hold it. It ends when the calling thread does, which must therefore wait for it.
    pub fn start(&self, report: &SandboxReport) -> Result<Running, Fault> {
        if !report.confined {
            return Err(Fault::new(Code::Unconfined, report.notes.join("; ")));
        }
        match init::ready() {
            Some(init) if report.namespaces => self.start_in_namespaces(init),
            _ => self.start_in_group(),
        }
    }

    /// What becomes its standard input: our end, and its.
    fn to_child(&self) -> Result<(OwnedFd, OwnedFd), Fault> {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

        if self.socket {
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).map_err(failed)
        } else {
            from_child().map(|(read, write)| (write, read))
        }
    }

    /// The folder to start in, by its handle where there is one, so that replacing it concurrently has no effect.
    fn start_folder(&self) -> PathBuf {
        match self.folder_handle {
            Some(handle) => PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd())),
            None => self.folder.to_owned(),
        }
    }

    fn handles(&self) -> Vec<BorrowedFd<'_>> {
        self.writable.iter().map(|(_, handle)| *handle).collect()
    }

    fn start_in_namespaces(&self, init: BorrowedFd<'_>) -> Result<Running, Fault> {
        let path =
            self.environment.iter().find(|(name, _)| *name == "PATH").map(|(_, path)| path.as_os_str());
        let program = find_program(self.words.first().map_or("", String::as_str), path, self.folder)?;
        let unconfined = |error: String| Fault::new(Code::Unconfined, error);
        let ruleset = self.reach.ruleset(&self.handles()).map_err(|error| unconfined(error.to_string()))?;
        let ruleset: Option<OwnedFd> = ruleset.into();
        let ruleset = ruleset.ok_or_else(|| unconfined("Landlock did not take effect".to_owned()))?;
        let ((input, their_input), (output, their_output), (errors, their_errors)) =
            (self.to_child()?, from_child()?, from_child()?);
        let variables = self.environment.iter().map(|(name, value)| {
            let mut variable = OsString::from(format!("{name}="));
            variable.push(value);
            text(&variable)
        });
        let born = spawn::give(&SpawnPlan {
            program: text(program.as_os_str())?,
            arguments: self.words.iter().map(|word| text(word.as_ref())).collect::<Result<_, _>>()?,
            environment: variables.collect::<Result<_, _>>()?,
            folder: text(self.folder.as_os_str())?,
            folder_handle: self.folder_handle,
            view: {
                let (visible, substitutes) = (self.reach.visible(), self.reach.substitutes());
                MountView::new(visible, self.writable, self.read_only, substitutes).map_err(failed)?
            },
            streams: [their_input.as_fd(), their_output.as_fd(), their_errors.as_fd()],
            ruleset: ruleset.as_fd(),
            filters: filters(self.reach.network()).map_err(unconfined)?,
            limits: self.limits.list(),
            tasks: self.tasks,
            init,
            network: self.reach.network(),
            ports: self.reach.ports(),
            connectors: self.reach.connectors(),
        });
        let Spawned { pid, handle, listeners, connectors, bounded } = born.map_err(failed)?;
        let mut listeners = listeners.into_iter().map(TcpListener::from);
        let (gateway, resolver) = (listeners.next(), listeners.next());
        let transparent =
            resolver.map(|resolver| TransparentListeners { resolver, connections: listeners.collect() });
        let life = self.state(ProgramHandle::Namespaces(pid), handle, bounded);
        Ok(Running { input, output, errors, gateway, transparent, connectors, life })
    }

    fn state(&self, held: ProgramHandle, handle: OwnedFd, bounded: bool) -> ProgramState {
        let (memory_bytes, shared_before) = (self.limits.memory_bytes, shared_memory::on_machine());
        ProgramState { held, handle, bounded, tasks: self.tasks, memory_bytes, shared_before }
    }

    fn start_in_group(&self) -> Result<Running, Fault> {
        let (input, their_input) = self.to_child()?;
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", BEGIN, "sh"])
            .args(self.words)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.start_folder())
            .stdin(Stdio::from(their_input))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group = Group::start().map_err(failed)?;
        let begun = self.reach.without_gateway().start(command, &self.handles(), &group).and_then(|child| {
            let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).map_err(failed)?;
            self.limits.set(Pid::from_child(&child)).map_err(failed)?;
            Ok((child, handle))
        });
        let (mut child, handle) = match begun {
            Ok(begun) => begun,
            Err(fault) => {
                group.end();
                return Err(fault);
            }
        };
        let streams = (child.stdout.take(), child.stderr.take());
        let held = ProgramHandle::Group(Box::new((child, group)));
        let life = self.state(held, handle, false);
        let (Some(output), Some(errors)) = streams else {
            life.end(&Switch::default()).map_err(failed)?;
            return Err(Fault::new(Code::Internal, "a stream of the program is missing"));
        };
        let (output, errors) = (OwnedFd::from(output), OwnedFd::from(errors));
        // One that has ended already cannot start; `wait` reports its end.
        let _ = File::from(input.try_clone().map_err(failed)?).write_all(b"\n");
        let connectors = Vec::new();
        Ok(Running { input, output, errors, gateway: None, transparent: None, connectors, life })
    }
}

impl ProgramState {
    /// The number of its group.
    pub fn group(&self) -> Pid {
        match &self.held {
            ProgramHandle::Namespaces(first) => *first,
            ProgramHandle::Group(both) => both.1.id(),
        }
    }

    /// Waits for its end, and says whether it has come.
    pub fn wait(&self, most: Duration) -> bool {
        let most = Timespec { tv_sec: most.as_secs() as _, tv_nsec: most.subsec_nanos().into() };
        // What cannot be waited for is taken for dead, and then killed.
        poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&most))
            .map_or_else(|error| error != rustix::io::Errno::INTR, |ready| ready > 0)
    }

    /// Whether it has more processes and threads than it may, where nothing but counting them keeps it from that.
    pub fn is_crowded(&self) -> bool {
        let tasks = || match &self.held {
            // Processes of a namespace may leave the group, but not the first process.
            ProgramHandle::Namespaces(first) => tasks_below(*first),
            ProgramHandle::Group(both) => tasks_of(both.1.id()),
        };
        !self.bounded && tasks() > self.tasks as usize
    }

    /// Whether its processes share more memory with each other than one of them may have. Looked at once in a while, it costs little: only
    /// where there is much more of it on the machine than before, that of these processes is counted.
    pub fn shares_too_much(&self) -> bool {
        if shared_memory::on_machine() < self.shared_before.saturating_add(self.memory_bytes / 2) {
            return false;
        }
        let processes = match &self.held {
            ProgramHandle::Namespaces(first) => processes_below(*first),
            ProgramHandle::Group(both) => processes_of(both.1.id()),
        };
        shared_memory::of(&processes) > self.memory_bytes
    }

    /// Whether the kernel bounds the number of its processes.
    pub fn is_bounded(&self) -> bool {
        self.bounded
    }

    /// Kills what is left of it, waits until it is gone, and says how it ended.
    pub fn end(self, switch: &Switch) -> std::io::Result<ExitStatus> {
        match self.held {
            ProgramHandle::Namespaces(first) => {
                // The group's number is given back with its leader, so it must not be used any more.
                switch.disconnect();
                let _ = kill_process_group(first, Signal::KILL);
                loop {
                    match waitid(WaitId::PidFd(self.handle.as_fd()), WaitIdOptions::EXITED) {
                        Err(rustix::io::Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                        Ok(None) => return Err(rustix::io::Errno::CHILD.into()),
                        Ok(Some(status)) => {
                            return Ok(passed_on(status.exit_status(), status.terminating_signal()));
                        }
                    }
                }
            }
            ProgramHandle::Group(both) => {
                let (mut child, mut group) = *both;
                group.kill();
                let status = child.wait();
                switch.disconnect();
                group.end();
                status
            }
        }
    }
}

/// How the program ended, by what the first process of its namespace passes on: a code, or 128 and a signal.
fn passed_on(code: Option<i32>, signal: Option<i32>) -> ExitStatus {
    match (code, signal) {
        (Some(code @ 129..=192), _) => ExitStatus::from_raw(code - 128),
        (Some(code), _) => ExitStatus::from_raw(code << 8),
        (None, signal) => ExitStatus::from_raw(signal.unwrap_or(libc::SIGKILL)),
    }
}

/// The filters of programs in namespaces, made once.
fn filters(network: Network) -> Result<&'static [BpfProgram; 2], String> {
    static CLOSED: OnceLock<Result<[BpfProgram; 2], String>> = OnceLock::new();
    static GATEWAY: OnceLock<Result<[BpfProgram; 2], String>> = OnceLock::new();
    static OPEN: OnceLock<Result<[BpfProgram; 2], String>> = OnceLock::new();
    let made = match network {
        Network::Closed => &CLOSED,
        Network::Gateway => &GATEWAY,
        Network::Open => &OPEN,
    };
    let wanted = FilterOptions { network, group: None, signals_by_group: false };
    made.get_or_init(|| calls::filters(&wanted)).as_ref().map_err(Clone::clone)
}

/// Whether programs can be started in namespaces on this machine: tested with one that exits immediately.
pub(crate) fn try_namespaces() -> Result<(), String> {
    let report =
        SandboxReport { confined: true, landlock: None, seccomp: true, namespaces: true, notes: Vec::new() };
    let program = Program {
        words: &["/bin/true".to_owned()],
        environment: &[],
        folder: Path::new("/"),
        folder_handle: None,
        reach: &ProgramAccess::new(&[], Network::Gateway),
        writable: &[],
        read_only: &[],
        limits: ProcessLimits { file_bytes: 1 << 20, memory_bytes: 1 << 30, cpu_seconds: None },
        tasks: 512,
        socket: false,
    };
    init::ready().ok_or("this machine runs no files in memory")?;
    let running = program.start(&report).map_err(|fault| fault.message)?;
    running.life.wait(Duration::from_secs(5));
    let status = running.life.end(&Switch::default()).map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("a first program in namespaces failed: {status}")) }
}

/// The file of a program: its path, or what has its name in `PATH`.
fn find_program(program: &str, path: Option<&OsStr>, folder: &Path) -> Result<PathBuf, Fault> {
    let missing = || Fault::new(Code::ToolFailed, format!("there is no program `{program}`"));
    let runs =
        |path: &PathBuf| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return Some(folder.join(program)).filter(runs).ok_or_else(missing);
    }
    let folders = path.map(std::env::split_paths).into_iter().flatten();
    folders.map(|folder| folder.join(program)).find(runs).ok_or_else(missing)
}

fn text(text: &OsStr) -> Result<CString, Fault> {
    CString::new(text.as_bytes()).map_err(failed)
}

/// A pipe that the child writes: our end, and its.
fn from_child() -> Result<(OwnedFd, OwnedFd), Fault> {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(failed)
}
