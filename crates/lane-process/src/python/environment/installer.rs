//! Runs the programs that make an environment, confined: they read the system, Python and what the user's registry configuration names,
//! write the environment and a temporary folder, and have the network. Their environment variables are listed here and in `registry`.
//!
//! Only wheels are asked for, so nothing of a package is to run here. Confinement holds what runs all the same.

use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::{LogLevel, Sinks};
use holdfast_contract::problem::{Code, Fault};
use holdfast_sandbox::{Network, ProcessLimits, Program, ProgramAccess, Running, SandboxReport, Switch};
use rustix::fs::{Mode, OFlags};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::python::environment::{failed, registry};
use crate::python::interpreter::Interpreter;

/// Lines of the installer that are told when it fails.
const TOLD: usize = 6;
/// Bytes that a file of a package may have, and memory that an installer may use: packages of machine learning are large.
const FILE_BYTES: u64 = 16 << 30;
const MEMORY_BYTES: u64 = 8 << 30;
/// How long one wait for the end of a step takes.
const WAIT: Duration = Duration::from_secs(60);

/// What runs the steps that make one environment.
pub(crate) struct Installer<'a> {
    setup: Arc<Setup>,
    deadline: Instant,
    told: (&'a ExtensionId, &'a Sinks),
}

/// What every step is started with.
struct Setup {
    /// The environment that is made.
    folder: PathBuf,
    /// A home and a folder for temporary files, which are removed in the end.
    scratch: tempfile::TempDir,
    variables: Vec<(String, OsString)>,
    readable: Vec<PathBuf>,
    report: SandboxReport,
}

/// The streams of a step that was started.
type Streams = (OwnedFd, OwnedFd);

impl<'a> Installer<'a> {
    /// Makes the folder of the environment, which must not exist, and prepares to fill it with this Python. `programs` are read besides.
    pub(crate) fn prepare(
        folder: &Path,
        python: &Interpreter,
        programs: &[PathBuf],
        report: SandboxReport,
        deadline: Instant,
        told: (&'a ExtensionId, &'a Sinks),
    ) -> Result<Self, Fault> {
        let io = |error: std::io::Error| failed("the installer has no folder", error);
        fs::create_dir(folder).map_err(io)?;
        let private = fs::Permissions::from_mode(0o700);
        let scratch = tempfile::Builder::new().prefix("holdfast-").permissions(private).tempdir();
        let scratch = scratch.map_err(io)?;
        let [home, temporary] = ["home", "tmp"].map(|name| scratch.path().join(name));
        fs::create_dir(&home).map_err(io)?;
        fs::create_dir(&temporary).map_err(io)?;
        let registry = registry::configured(std::env::vars_os(), &home, &[folder]).map_err(io)?;
        let mut variables = registry.variables;
        let fixed: [(&str, OsString); 8] = [
            ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into()),
            ("HOME", home.into()),
            ("TMPDIR", temporary.into()),
            ("LANG", "C.UTF-8".into()),
            ("PIP_DISABLE_PIP_VERSION_CHECK", "1".into()),
            ("PIP_NO_CACHE_DIR", "1".into()),
            ("UV_NO_CACHE", "1".into()),
            ("UV_PYTHON_DOWNLOADS", "never".into()),
        ];
        variables.extend(fixed.map(|(name, value)| (name.to_owned(), value)));
        let mut readable = registry.readable;
        readable.push(python.prefix.clone());
        // An interpreter of a virtual environment reads there where its library is.
        let virtual_environment = python.executable.parent().and_then(Path::parent);
        readable.extend(virtual_environment.map(|folder| folder.join("pyvenv.cfg")));
        readable.extend_from_slice(programs);
        let setup = Setup { folder: folder.to_owned(), scratch, variables, readable, report };
        Ok(Self { setup: Arc::new(setup), deadline, told })
    }

    /// Writes a file that steps can read.
    pub(crate) fn file(&self, name: &str, text: &str) -> Result<PathBuf, Fault> {
        let path = self.setup.scratch.path().join(name);
        fs::write(&path, text).map_err(|error| failed("the installer has no folder", error))?;
        Ok(path)
    }

    /// Runs a step. What it writes goes to the log, and the last lines of it into the fault if it fails.
    pub(crate) async fn run(&self, words: &[&str]) -> Result<(), Fault> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let switch = Stop(Arc::new(Switch::default()));
        let (begun, started) = oneshot::channel();
        let (ended, exit) = oneshot::channel();
        let (setup, held) = (self.setup.clone(), switch.0.clone());
        // A program ends with the thread that started it, so the same thread waits for its end.
        let step = move || setup.step(&words, &held, begun, ended);
        let thread = std::thread::Builder::new().name("installer".to_owned()).spawn(step);
        thread.map_err(|error| failed("no thread could be started", error))?;
        let gone = |_| Fault::new(Code::Internal, "the thread that starts the installer has ended");
        let (output, errors) = started.await.map_err(gone)??;
        let last = Mutex::new(Vec::new());
        let finished = async {
            let ((), (), status) = tokio::join!(self.tell(output, &last), self.tell(errors, &last), exit);
            status
        };
        let status = match tokio::time::timeout_at(self.deadline, finished).await {
            Ok(status) => status.map_err(gone)?,
            Err(_) => return Err(failed("installing took too long", "it was stopped")),
        };
        let status = status.map_err(|error| failed("the installer was lost", error))?;
        if status.success() {
            return Ok(());
        }
        let last = last.into_inner().unwrap_or_else(PoisonError::into_inner);
        Err(Fault::new(Code::PackagesFailed, format!("{status}: {}", last.join(" / "))))
    }

    async fn tell(&self, stream: OwnedFd, last: &Mutex<Vec<String>>) {
        let (id, sinks) = self.told;
        let Ok(stream) = pipe::Receiver::from_owned_fd(stream) else { return };
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            sinks.log(id, LogLevel::Debug, line);
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            last.push(line.to_owned());
            if last.len() > TOLD {
                last.remove(0);
            }
        }
    }
}

/// Ends a step when nobody waits for it any more.
struct Stop(Arc<Switch>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.turn_off();
    }
}

impl Setup {
    /// Starts a step and waits for its end. Nobody may be there any more to hear of it.
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
            while !life.wait(WAIT) {}
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
            // Installers look for configuration and for packages in the folder that they are started in.
            folder: Path::new("/"),
            reach: &ProgramAccess::new(&self.readable, Network::Open),
            writable: &writable,
            limits: ProcessLimits { file_bytes: FILE_BYTES, memory_bytes: MEMORY_BYTES, cpu_seconds: None },
            socket: false,
        };
        program.start(&self.report).map_err(|fault| match fault.code {
            Code::ToolFailed => Fault { code: Code::PackagesFailed, ..fault },
            _ => fault,
        })
    }
}
