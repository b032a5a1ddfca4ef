//! The Python worker: a small package that needs only the standard library, written once for all processes of a lane, into a folder
//! that has no files of an extension.

use std::fmt::{Debug, Formatter};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use holdfast_contract::digest::Digest;
use holdfast_contract::manifest::ProgramCommand;
use holdfast_contract::problem::{Code, Fault};
use holdfast_sandbox::SandboxReport;
use holdfast_untrusted_files::{ProgramSearch, open_regular};

use crate::lane::AgentFolders;
use crate::python::interpreter::Interpreter;
use crate::python::step::confined_step;

macro_rules! files {
    ($($path:literal),+ $(,)?) => { &[$(($path, include_str!($path))),+] };
}

/// The worker's files.
const FILES: &[(&str, &str)] = files![
    "__main__.py",
    "holdfast_worker/__init__.py",
    "holdfast_worker/classes.py",
    "holdfast_worker/context.py",
    "holdfast_worker/contract.py",
    "holdfast_worker/conversations.py",
    "holdfast_worker/docstrings.py",
    "holdfast_worker/files.py",
    "holdfast_worker/guard.py",
    "holdfast_worker/imports.py",
    "holdfast_worker/listening.py",
    "holdfast_worker/main.py",
    "holdfast_worker/mcp_servers.py",
    "holdfast_worker/message.py",
    "holdfast_worker/models.py",
    "holdfast_worker/report.py",
    "holdfast_worker/sdk_model.py",
    "holdfast_worker/shapes.py",
    "holdfast_worker/signatures.py",
    "holdfast_worker/tools.py",
    "holdfast_worker/wire.py",
    "holdfast_worker/standins/agents.py",
    "holdfast_worker/standins/core/__init__.py",
    "holdfast_worker/standins/core/events/__init__.py",
    "holdfast_worker/standins/core/events/models.py",
    "holdfast_worker/standins/core/events/topics.py",
    "holdfast_worker/standins/core/extensions/__init__.py",
    "holdfast_worker/standins/core/extensions/context.py",
    "holdfast_worker/standins/core/extensions/contract.py",
    "holdfast_worker/standins/core/extensions/instructions.py",
    "holdfast_worker/standins/core/extensions/manifest.py",
    "holdfast_worker/standins/core/extensions/persistence/__init__.py",
    "holdfast_worker/standins/core/extensions/persistence/models.py",
    "holdfast_worker/standins/core/extensions/update_fields.py",
    "holdfast_worker/standins/core/llm/__init__.py",
    "holdfast_worker/standins/core/llm/capabilities.py",
    "holdfast_worker/standins/core/utils/__init__.py",
    "holdfast_worker/standins/core/utils/formatting.py",
    "holdfast_worker/standins/pith/__init__.py",
    "holdfast_worker/standins/pith/core.py",
];

/// The number of started workers from which compiling the worker's files saves time.
pub(crate) const COMPILE_THRESHOLD: usize = 3;
/// How long compiling them may take.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(60);

/// The worker of a lane.
pub(crate) struct Worker {
    pub(crate) folder: PathBuf,
    /// The machine's own interpreter, which no package of an extension can have replaced.
    python: Interpreter,
    report: SandboxReport,
    agent_folders: Option<AgentFolders>,
    started: AtomicUsize,
}

impl Debug for Worker {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Worker {
    /// Writes its files. Each interpreter has a worker of its own, because one writes compiled files for itself there.
    pub(crate) fn lay_out(
        place: &Path,
        python: &Interpreter,
        report: &SandboxReport,
        agent_folders: &Option<AgentFolders>,
    ) -> Result<Arc<Self>, Fault> {
        let digest = Digest::of(python.identity().as_bytes()).to_string();
        let folder = place.join(format!(".worker-{}", digest.get(..8).unwrap_or_default()));
        for (name, text) in FILES {
            let path = folder.join(name);
            let failed = |error: std::io::Error| {
                Fault::new(Code::ExtensionGone, format!("{}: {error}", path.display()))
            };
            fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(failed)?;
            let options = &mut OpenOptions::new();
            let file = open_regular(options.write(true).create(true).truncate(true), &path);
            file.map_err(Into::into).and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)?;
        }
        let (python, report) = (python.clone(), report.clone());
        let agent_folders = agent_folders.clone();
        Ok(Arc::new(Self { folder, python, report, agent_folders, started: AtomicUsize::new(0) }))
    }

    /// How it is started: on a file in `tools/` or `channels/`, or on a class, `module:Class`.
    pub(crate) fn command(&self, python: &Path, entrypoint: &str) -> Option<ProgramCommand> {
        let kind = match entrypoint {
            file if file.starts_with("tools/") && file.ends_with(".py") => "tool",
            file if file.starts_with("channels/") && file.ends_with(".py") => "channel",
            _ => "class",
        };
        // Without `site`, which costs start time; the worker imports it when a package outside the standard library is needed.
        let words = [python.to_str()?, "-S", "-B", self.folder.to_str()?, kind, entrypoint];
        ProgramCommand::new(words.map(str::to_owned).to_vec())
    }

    /// Refuses to start a worker with a program that agents can have written since it was found.
    pub(crate) fn check(&self, program: &Path) -> Result<(), Fault> {
        let folders = self.agent_folders.as_ref().map(|folders| folders()).unwrap_or_default();
        if !ProgramSearch::new(None, &folders).avoids(program) {
            return Ok(());
        }
        let what = format!(
            "{} lies in a folder that agents can write by now, and is not started; start Holdfast again, and another Python is used",
            program.display()
        );
        Err(Fault::new(Code::InterpreterMissing, what))
    }

    /// Counts a start. At the threshold the worker's files are compiled in the background, which shortens later starts by a third; for
    /// one or two workers that would not pay for another start of the interpreter.
    pub(crate) fn count_start(&self) {
        if self.started.fetch_add(1, Ordering::Relaxed) + 1 != COMPILE_THRESHOLD {
            return;
        }
        let (folder, python, report) = (self.folder.clone(), self.python.clone(), self.report.clone());
        let compile = move || {
            let (program, place) = (python.executable.to_str()?, folder.to_str()?);
            let words = [program, "-I", "-S", "-m", "compileall", "-q", place];
            confined_step(&words, &python.readable(), Some(&folder), COMPILE_TIMEOUT, &report).ok()
        };
        // Best effort: workers also run uncompiled files.
        drop(std::thread::Builder::new().name("compile".to_owned()).spawn(compile));
    }
}

/// The digest of this version of the worker.
pub(crate) fn digest() -> Digest {
    Digest::of(FILES.iter().map(|(name, text)| format!("{name}\n{text}")).collect::<String>().as_bytes())
}
