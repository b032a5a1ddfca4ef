//! The Python worker: a small package of the standard library's Python, laid out once for all the processes of a lane, in a folder that
//! none of them has files of its own in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use holdfast_contract::digest::Digest;
use holdfast_contract::manifest::ProgramCommand;
use holdfast_contract::problem::{Code, Fault};

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
    "holdfast_worker/docstrings.py",
    "holdfast_worker/files.py",
    "holdfast_worker/imports.py",
    "holdfast_worker/main.py",
    "holdfast_worker/message.py",
    "holdfast_worker/report.py",
    "holdfast_worker/shapes.py",
    "holdfast_worker/signatures.py",
    "holdfast_worker/tools.py",
    "holdfast_worker/wire.py",
    "holdfast_worker/standins/agents.py",
    "holdfast_worker/standins/core/__init__.py",
    "holdfast_worker/standins/core/extensions/__init__.py",
    "holdfast_worker/standins/core/extensions/context.py",
    "holdfast_worker/standins/core/extensions/contract.py",
    "holdfast_worker/standins/pith/__init__.py",
    "holdfast_worker/standins/pith/core.py",
];

/// How many workers are started before it pays to compile what all of them read.
pub(crate) const SEVERAL: usize = 3;

/// The worker of a lane, in the folder that the lane's processes have theirs in.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) folder: PathBuf,
    /// The machine's own interpreter, which nothing that an extension brought along can have replaced.
    python: PathBuf,
    started: AtomicUsize,
}

impl Worker {
    /// Writes its files.
    pub(crate) fn lay_out(place: &Path, python: &Path) -> Result<Arc<Self>, Fault> {
        let folder = place.join(".worker");
        for (name, text) in FILES {
            let path = folder.join(name);
            let failed = |error: std::io::Error| {
                Fault::new(Code::ExtensionGone, format!("{}: {error}", path.display()))
            };
            fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(failed)?;
            fs::write(&path, text).map_err(failed)?;
        }
        Ok(Arc::new(Self { folder, python: python.to_owned(), started: AtomicUsize::new(0) }))
    }

    /// How it is started: on a file in `tools/` or `channels/`, or on a class, `module:Class`.
    pub(crate) fn command(&self, python: &Path, entrypoint: &str) -> Option<ProgramCommand> {
        let kind = match entrypoint {
            file if file.starts_with("tools/") && file.ends_with(".py") => "tool",
            file if file.starts_with("channels/") && file.ends_with(".py") => "channel",
            _ => "class",
        };
        // Without `site`, which the worker makes up for when something is imported from outside the standard library.
        let words = [python.to_str()?, "-S", "-B", self.folder.to_str()?, kind, entrypoint];
        ProgramCommand::new(words.map(str::to_owned).to_vec())
    }

    /// One more is started. Where there are several, its files are compiled meanwhile, which saves a third of their start to those that
    /// come later; where there are one or two, that is not worth another start of the interpreter.
    pub(crate) fn one_more(&self) {
        if self.started.fetch_add(1, Ordering::Relaxed) + 1 != SEVERAL {
            return;
        }
        let mut compile = tokio::process::Command::new(&self.python);
        compile.args(["-I", "-S", "-m", "compileall", "-q"]).arg(&self.folder).env_clear();
        // Whoever finds nothing compiled does it without.
        let _child = compile.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    }
}

/// What tells this worker from others.
pub(crate) fn digest() -> Digest {
    Digest::of(FILES.iter().map(|(name, text)| format!("{name}\n{text}")).collect::<String>().as_bytes())
}
