//! The Python worker: a small package of the standard library's Python, laid out once for all the processes of a lane, in a folder that
//! none of them has files of its own in.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use holdfast_contract::digest::Digest;
use holdfast_contract::manifest::Command;
use holdfast_contract::problem::{Code, Fault};

macro_rules! files {
    ($($path:literal),+ $(,)?) => { &[$(($path, include_str!(concat!("python/", $path)))),+] };
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

/// The file that is written last.
const LAST: &str = "__main__.py";

/// The folder of a lane's worker, in the folder that the lane's processes have theirs in. It is laid out when it is first asked for.
pub(crate) fn folder(place: &Path) -> Result<PathBuf, Fault> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = place.join(".worker");
    if folder.join(LAST).exists() {
        return Ok(folder);
    }
    let (last, others): (Vec<_>, Vec<_>) = FILES.iter().partition(|(name, _)| *name == LAST);
    for (name, text) in others.into_iter().chain(last) {
        let path = folder.join(name);
        let failed =
            |error: std::io::Error| Fault::new(Code::ExtensionGone, format!("{}: {error}", path.display()));
        fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(failed)?;
        fs::write(&path, text).map_err(failed)?;
    }
    Ok(folder)
}

/// What tells this worker from others.
pub(crate) fn digest() -> Digest {
    Digest::of(FILES.iter().map(|(name, text)| format!("{name}\n{text}")).collect::<String>().as_bytes())
}

/// How the worker in this folder is started: on a file in `tools/` or `channels/`, or on a class, `module:Class`.
pub(crate) fn command(python: &Path, folder: &Path, entrypoint: &str) -> Option<Command> {
    let kind = match entrypoint {
        file if file.starts_with("tools/") && file.ends_with(".py") => "tool",
        file if file.starts_with("channels/") && file.ends_with(".py") => "channel",
        _ => "class",
    };
    // Without `site`, which the worker makes up for when something is imported from outside the standard library.
    let words = [python.to_str()?, "-S", "-B", folder.to_str()?, kind, entrypoint];
    Command::new(words.map(str::to_owned).to_vec())
}
