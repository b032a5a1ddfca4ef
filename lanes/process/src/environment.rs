//! The packages of an extension: an environment of its own, made once for each list of packages, while the extension is loaded and never
//! later. Whoever installs runs nothing of what it installs: only packages that are built already are taken.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::{LogLevel, Progress, Sinks};
use holdfast_contract::problem::{Code, Fault};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;

use crate::interpreter::Interpreter;
use crate::requirements::Requirements;

/// How long packages may take to be installed.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// What says that an environment is whole.
const WHOLE: &str = "whole";
/// Lines of the installer that are told when it fails.
const TOLD: usize = 6;

/// An environment that is there.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// Its folder.
    pub folder: PathBuf,
}

fn failed(what: &str, error: impl std::fmt::Display) -> Fault {
    Fault::new(Code::PackagesFailed, format!("{what}: {error}"))
}

impl Environment {
    /// Its Python.
    pub(crate) fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    /// The one with these packages, made if it is not there.
    pub(crate) async fn with(
        needed: &Requirements,
        python: &Interpreter,
        place: &Path,
        (id, sinks): (&ExtensionId, &Sinks),
    ) -> Result<Self, Fault> {
        let folder = place.join(&needed.digest(&python.identity()).to_string()[..32]);
        let made = Self { folder };
        if made.is_whole() {
            return Ok(made);
        }
        fs::create_dir_all(place).map_err(|error| failed(&place.display().to_string(), error))?;
        let _alone = alone(made.folder.with_extension("lock")).await?;
        if made.is_whole() {
            return Ok(made);
        }
        let began = Instant::now();
        sinks.progress(id, Progress::Installing { packages: needed.lines.iter().cloned().collect() });
        // What an earlier try has left is of no use.
        let _ = fs::remove_dir_all(&made.folder);
        let filled = tokio::time::timeout(PATIENCE, made.fill(needed, python, (id, sinks))).await;
        let late = || failed("installing took too long", format!("more than {} s", PATIENCE.as_secs()));
        if let Err(fault) = filled.unwrap_or_else(|_| Err(late())) {
            let _ = fs::remove_dir_all(&made.folder);
            return Err(fault);
        }
        sinks.progress(id, Progress::Installed { millis: began.elapsed().as_millis() as u64 });
        Ok(made)
    }

    fn is_whole(&self) -> bool {
        self.folder.join(WHOLE).is_file()
    }

    async fn fill(
        &self,
        needed: &Requirements,
        python: &Interpreter,
        told: (&ExtensionId, &Sinks),
    ) -> Result<(), Fault> {
        let list = tempfile::NamedTempFile::new().map_err(|error| failed("no file for a while", error))?;
        let lines: Vec<&str> = needed.lines.iter().map(String::as_str).collect();
        fs::write(list.path(), lines.join("\n")).map_err(|error| failed("no file for a while", error))?;
        let (own, base) = (self.python(), &python.executable);
        let uv = std::env::var_os("PATH").and_then(|path| {
            std::env::split_paths(&path).map(|folder| folder.join("uv")).find(|uv| uv.is_file())
        });
        match uv {
            Some(uv) => {
                let mut make = Command::new(&uv);
                make.args(["venv", "--quiet", "--python"]).arg(base).arg(&self.folder);
                run(make, told).await?;
                let mut install = Command::new(&uv);
                install.args(["pip", "install", "--only-binary", ":all:", "--python"]).arg(&own);
                install.arg("-r").arg(list.path());
                run(install, told).await?;
            }
            None => {
                let mut make = Command::new(base);
                make.args(["-I", "-m", "venv"]).arg(&self.folder);
                run(make, told).await?;
                let mut install = Command::new(&own);
                install.args(["-I", "-m", "pip", "install", "--no-input", "--only-binary", ":all:"]);
                install.arg("-r").arg(list.path());
                run(install, told).await?;
            }
        }
        fs::write(self.folder.join(WHOLE), lines.join("\n"))
            .map_err(|error| failed("it cannot be kept", error))
    }
}

/// Keeps others, of this process or of another, from making the same environment at the same time.
async fn alone(path: PathBuf) -> Result<File, Fault> {
    let locked = tokio::task::spawn_blocking(move || {
        let file = File::create(path)?;
        file.lock().map(|()| file)
    });
    let locked = locked.await.map_err(|error| failed("no lock", error))?;
    locked.map_err(|error| failed("no lock", error))
}

/// Runs a step. What it writes goes to the log, and the last of it into the fault if it fails.
async fn run(mut command: Command, (id, sinks): (&ExtensionId, &Sinks)) -> Result<(), Fault> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| failed(&program, error))?;
    let last = Mutex::new(Vec::new());
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let told = async {
        tokio::join!(tell(output, &last, id, sinks), tell(errors, &last, id, sinks));
    };
    let ((), status) = tokio::join!(told, child.wait());
    let status = status.map_err(|error| failed(&program, error))?;
    if status.success() {
        return Ok(());
    }
    let last = last.into_inner().unwrap_or_else(PoisonError::into_inner);
    Err(Fault::new(Code::PackagesFailed, format!("{status}: {}", last.join(" / "))))
}

async fn tell(
    stream: Option<impl AsyncRead + Unpin>,
    last: &Mutex<Vec<String>>,
    id: &ExtensionId,
    sinks: &Sinks,
) {
    let Some(stream) = stream else { return };
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
