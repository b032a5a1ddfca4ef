//! Runs the programs that make an environment, confined: they read the system, the interpreter and what the user's registry configuration
//! names, write the environment and a temporary folder, and have the network. Their environment variables are listed here and in the
//! `registry` of each language.
//!
//! Wheels only, and packages without their install scripts: no code of a package should run here. If some does, confinement contains it.

use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::{LogLevel, Sinks};
use holdfast_contract::problem::{Code, Fault};
use holdfast_sandbox::{Network, ProcessLimits, Program, ProgramAccess, Running, SandboxReport, Switch};
use holdfast_untrusted_files::TempFolder;
use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::packages::failed;

/// The last lines of output that are part of the error message.
const MAX_REPORTED_LINES: usize = 6;
/// The longest line of output that is read as one; a longer one is several.
const MAX_LINE_BYTES: u64 = 4 << 10;
/// The largest file of a package, and the memory of an installer: machine-learning packages are large.
const FILE_BYTES: u64 = 16 << 30;
const MEMORY_BYTES: u64 = 8 << 30;
/// The maximal number of processes and threads of a step.
const MAX_TASKS: u32 = 512;
/// How long one wait for the exit of a step lasts before it is repeated.
const WAIT_INTERVAL: Duration = Duration::from_secs(60);

/// What the steps have besides the system, their own folders and the variables that all have.
#[derive(Debug, Default)]
pub(crate) struct Configured {
    /// Variables.
    pub(crate) variables: Vec<(String, OsString)>,
    /// Paths that they may read.
    pub(crate) readable: Vec<PathBuf>,
}

/// Runs the steps that create one environment.
pub(crate) struct Installer<'a> {
    setup: Arc<Setup>,
    deadline: Instant,
    log_target: (&'a ExtensionId, &'a Sinks),
}

/// How every step is started.
struct Setup {
    /// The environment that is created.
    folder: PathBuf,
    /// A home and a temporary folder, removed at the end.
    scratch: TempFolder,
    variables: Vec<(String, OsString)>,
    readable: Vec<PathBuf>,
    report: SandboxReport,
}

/// Standard output and standard error of a step.
type Streams = (OwnedFd, OwnedFd);

impl<'a> Installer<'a> {
    /// Creates the folder of the environment, which must not exist. `configure` gets the home of the steps and puts configuration there.
    pub(crate) fn prepare(
        folder: &Path,
        configure: impl FnOnce(&Path) -> std::io::Result<Configured>,
        report: SandboxReport,
        deadline: Instant,
        log_target: (&'a ExtensionId, &'a Sinks),
    ) -> Result<Self, Fault> {
        let io = |error: std::io::Error| failed("could not create the installer's folder", error);
        fs::create_dir(folder).map_err(io)?;
        let scratch = TempFolder::new().map_err(io)?;
        let [home, temporary] = ["home", "tmp"].map(|name| scratch.path().join(name));
        fs::create_dir(&home).map_err(io)?;
        fs::create_dir(&temporary).map_err(io)?;
        let Configured { mut variables, readable } = configure(&home).map_err(io)?;
        let fixed: [(&str, OsString); 4] = [
            ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into()),
            ("HOME", home.into()),
            ("TMPDIR", temporary.into()),
            ("LANG", "C.UTF-8".into()),
        ];
        variables.extend(fixed.map(|(name, value)| (name.to_owned(), value)));
        let setup = Setup { folder: folder.to_owned(), scratch, variables, readable, report };
        Ok(Self { setup: Arc::new(setup), deadline, log_target })
    }

    /// A folder that steps can write, which is removed at the end.
    pub(crate) fn scratch(&self) -> &Path {
        self.setup.scratch.path()
    }

    /// Writes a file that steps can read.
    pub(crate) fn file(&self, name: &str, text: &str) -> Result<PathBuf, Fault> {
        let path = self.setup.scratch.path().join(name);
        fs::write(&path, text).map_err(|error| failed("could not create the installer's folder", error))?;
        Ok(path)
    }

    /// Runs a step. Its output is logged; if it fails, the last lines are part of the fault.
    pub(crate) async fn run(&self, words: &[&str]) -> Result<(), Fault> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let switch = StopGuard(Arc::new(Switch::default()));
        let (begun, started) = oneshot::channel();
        let (ended, exit) = oneshot::channel();
        let (setup, held) = (self.setup.clone(), switch.0.clone());
        // The kernel kills a program when the thread that spawned it exits, so that thread also waits for it.
        let step = move || setup.step(&words, &held, begun, ended);
        let thread = std::thread::Builder::new().name("installer".to_owned()).spawn(step);
        thread.map_err(|error| failed("could not start a thread", error))?;
        let gone = |_| Fault::new(Code::Internal, "the thread that starts the installer has exited");
        let (output, errors) = started.await.map_err(gone)??;
        let last = Mutex::new(Vec::new());
        let finished = async {
            let ((), (), status) = tokio::join!(self.log(output, &last), self.log(errors, &last), exit);
            status
        };
        let status = match tokio::time::timeout_at(self.deadline, finished).await {
            Ok(status) => status.map_err(gone)?,
            Err(_) => return Err(failed("installation timed out", "the installer was stopped")),
        };
        let status = status.map_err(|error| failed("could not wait for the installer", error))?;
        if status.success() {
            return Ok(());
        }
        let last = last.into_inner();
        Err(Fault::new(Code::PackagesFailed, format!("{status}: {}", last.join(" / "))))
    }

    async fn log(&self, stream: OwnedFd, last: &Mutex<Vec<String>>) {
        let (id, sinks) = self.log_target;
        let Ok(stream) = pipe::Receiver::from_owned_fd(stream) else { return };
        let (mut stream, mut bytes) = (BufReader::new(stream), Vec::new());
        loop {
            bytes.clear();
            match (&mut stream).take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let line = String::from_utf8_lossy(&bytes);
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            sinks.log(id, LogLevel::Debug, line);
            let mut last = last.lock();
            last.push(line.to_owned());
            if last.len() > MAX_REPORTED_LINES {
                last.remove(0);
            }
        }
    }
}

/// Kills a step when its caller no longer waits for it.
struct StopGuard(Arc<Switch>);

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.turn_off();
    }
}

impl Setup {
    /// Spawns a step and waits for its exit. The receivers may be gone by then.
    fn step(
        &self,
        words: &[String],
        switch: &Switch,
        begun: oneshot::Sender<Result<Streams, Fault>>,
        ended: oneshot::Sender<std::io::Result<ExitStatus>>,
    ) {
        let Running { input, output, errors, life, .. } = match self.start(words) {
            Ok(running) => running,
            Err(fault) => return drop(begun.send(Err(fault))),
        };
        drop(input);
        if switch.connect(life.group()) && begun.send(Ok((output, errors))).is_ok() {
            while !life.wait(WAIT_INTERVAL) {}
        }
        drop(ended.send(life.end(switch)));
    }

    fn start(&self, words: &[String]) -> Result<Running, Fault> {
        let writable = [self.folder.as_path(), self.scratch.path()];
        let handles = writable.map(|path| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open(path, flags, Mode::empty())
                .map_err(|error| failed(&path.display().to_string(), error))
        });
        let [folder, scratch] = handles;
        let handles = [folder?, scratch?];
        let writable: Vec<_> = writable.into_iter().zip(handles.iter().map(AsFd::as_fd)).collect();
        let environment: Vec<(&str, OsString)> =
            self.variables.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let program = Program {
            words,
            environment: &environment,
            // Not the folder of the extension: installers look for configuration and packages in their working directory.
            folder: Path::new("/"),
            folder_handle: None,
            reach: &ProgramAccess::new(&self.readable, Network::Open),
            writable: &writable,
            read_only: &[],
            limits: ProcessLimits { file_bytes: FILE_BYTES, memory_bytes: MEMORY_BYTES, cpu_seconds: None },
            tasks: MAX_TASKS,
            socket: false,
        };
        program.start(&self.report).map_err(|fault| match fault.code {
            Code::ToolFailed => Fault { code: Code::PackagesFailed, ..fault },
            _ => fault,
        })
    }
}
