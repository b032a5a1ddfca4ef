//! The Python interpreter of this machine, found once, as the user's shell would find it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use holdfast_contract::problem::{Code, Fault};
use serde::Deserialize;

/// The oldest Python version that the worker supports.
const MIN_VERSION: (u32, u32) = (3, 10);
/// Candidates besides the `PATH`.
const DEFAULT_PATHS: &[&str] = &["/usr/local/bin/python3", "/usr/bin/python3"];
/// The libraries that Python and its standard library are linked with.
const LIBRARIES: &[&str] = &[
    "python", "ssl", "crypto", "ffi", "z", "bz2", "lzma", "sqlite3", "expat", "uuid", "readline", "ncurses",
    "tinfo", "panel", "mpdec", "gcc_s", "stdc++", "tcl", "tk", "gdbm", "intl",
];
/// How long a candidate may take to report its version.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Reports the interpreter itself: its name may be a link or a wrapper script, which a confined program could not follow.
const PROBE: &str = "import json,sys;print(json.dumps({'executable':sys.executable,'version':sys.version_info[:3],\
                        'prefix':sys.base_prefix,'implementation':sys.implementation.cache_tag or sys.implementation.name}))";

/// A Python interpreter.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Interpreter {
    /// The program itself.
    pub executable: PathBuf,
    version: (u32, u32, u32),
    /// The folder of the interpreter and its library.
    pub prefix: PathBuf,
    implementation: String,
}

impl Interpreter {
    /// The first on the `PATH` that is new enough.
    pub(crate) async fn find() -> Result<Self, Fault> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let named = std::env::split_paths(&path).map(|folder| folder.join("python3"));
        let mut too_old = None;
        for candidate in named.chain(DEFAULT_PATHS.iter().map(PathBuf::from)).filter(|path| path.is_file()) {
            match probe(&candidate).await {
                Some(found) if (found.version.0, found.version.1) >= MIN_VERSION => return Ok(found),
                Some(old) => too_old = Some(format!("{} is {}", old.executable.display(), old.version())),
                None => {}
            }
        }
        let (major, minor) = MIN_VERSION;
        let why = too_old.unwrap_or_else(|| "there is no `python3` on the `PATH`".to_owned());
        Err(Fault::new(Code::InterpreterMissing, format!("Python {major}.{minor} or later is needed: {why}")))
    }

    /// What a program must be able to read to run it: its programs, its library, and the shared libraries that those load. Not its whole
    /// prefix, which may be a user's folder such as `~/.local`.
    pub(crate) fn readable(&self) -> Vec<PathBuf> {
        let (major, minor, _) = self.version;
        let library = format!("python{major}.{minor}");
        let mut readable = vec![self.executable.clone(), self.prefix.join("bin")];
        for folder in ["lib", "lib64"].map(|name| self.prefix.join(name)) {
            readable.push(folder.join(&library));
            readable.extend(shared_libraries(&folder));
        }
        if let Some(folder) = self.virtual_environment() {
            readable.extend(["pyvenv.cfg", "bin"].map(|name| folder.join(name)));
            readable.extend(["lib", "lib64"].map(|name| folder.join(name).join(&library)));
        }
        readable.retain(|path| path.exists());
        readable
    }

    /// The folder of the virtual environment that its program lies in. Python reads its configuration before anything else.
    fn virtual_environment(&self) -> Option<&Path> {
        let folder = self.executable.parent()?.parent()?;
        folder.join("pyvenv.cfg").is_file().then_some(folder)
    }

    /// Its version.
    pub(crate) fn version(&self) -> String {
        let (major, minor, patch) = self.version;
        format!("{major}.{minor}.{patch}")
    }

    /// Distinguishes it from other interpreters, as far as packages and descriptors depend on it.
    pub(crate) fn identity(&self) -> String {
        format!("{} {} {}", self.implementation, self.version(), self.executable.display())
    }
}

/// The shared libraries of a folder that an interpreter and its standard library load.
fn shared_libraries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let loaded = named.filter(|name| {
        name.contains(".so") && LIBRARIES.iter().any(|library| name.starts_with(&format!("lib{library}")))
    });
    loaded.map(|name| folder.join(name)).collect()
}

async fn probe(candidate: &Path) -> Option<Interpreter> {
    let mut command = tokio::process::Command::new(candidate);
    command.args(["-I", "-S", "-c", PROBE]).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PROBE_TIMEOUT, command.output()).await.ok()?.ok()?;
    serde_json::from_slice(&output.stdout).ok()
}
