//! The Python interpreter of this machine, found once, as the user's shell would find it.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use holdfast_contract::problem::{Code, Fault};
use serde::Deserialize;

/// The oldest Python version that the worker supports.
const MIN_VERSION: (u32, u32) = (3, 10);
/// Candidates besides the `PATH`.
const DEFAULT_PATHS: &[&str] = &["/usr/local/bin/python3", "/usr/bin/python3"];
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

async fn probe(candidate: &std::path::Path) -> Option<Interpreter> {
    let mut command = tokio::process::Command::new(candidate);
    command.args(["-I", "-S", "-c", PROBE]).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PROBE_TIMEOUT, command.output()).await.ok()?.ok()?;
    serde_json::from_slice(&output.stdout).ok()
}
