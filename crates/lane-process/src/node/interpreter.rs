//! The Node of this machine, found once, as the user's shell would find it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use holdfast_contract::problem::{Code, Fault};
use serde::Deserialize;

/// The oldest version that the worker supports.
const MIN_VERSION: (u32, u32) = (20, 15);
/// Candidates besides the `PATH`.
const DEFAULT_PATHS: &[&str] = &["/usr/local/bin/node", "/usr/bin/node"];
/// How long a candidate may take to report its version.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Reports the program itself: its name may be a link, which a confined program could not follow.
const PROBE: &str = "JSON.stringify({executable:process.execPath,abi:process.versions.modules,\
                     version:process.versions.node.split('.').map(Number)})";

/// Keeps programs below their limit of address space, of which Node's handler for WebAssembly reserves more than there is.
pub(crate) const WASM_FLAG: &str = "--disable-wasm-trap-handler";

/// A Node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Interpreter {
    /// The program itself.
    pub executable: PathBuf,
    version: (u32, u32, u32),
    /// The version of its binary interface, which native add-ons depend on.
    abi: String,
}

impl Interpreter {
    /// The first on the `PATH` that is new enough.
    pub(crate) async fn find() -> Result<Self, Fault> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let here = std::env::current_dir().ok();
        let user = std::env::var_os("HOME").map(PathBuf::from);
        let closed = here.filter(|here| !user.is_some_and(|user| user.starts_with(here)));
        let mut too_old = None;
        for candidate in candidates(&path, closed.as_deref()) {
            match probe(&candidate).await {
                Some(found) if (found.version.0, found.version.1) >= MIN_VERSION => return Ok(found),
                Some(old) => too_old = Some(format!("{} is {}", old.executable.display(), old.version())),
                None => {}
            }
        }
        let (major, minor) = MIN_VERSION;
        let why = too_old.unwrap_or_else(|| "there is no `node` on the `PATH`".to_owned());
        Err(Fault::new(Code::InterpreterMissing, format!("Node {major}.{minor} or later is needed: {why}")))
    }

    /// What a program must be able to read to run it: the program, and its own shared libraries, if it has any.
    pub(crate) fn readable(&self) -> Vec<PathBuf> {
        let prefix = self.executable.parent().and_then(Path::parent);
        let library = prefix.map(|prefix| prefix.join("lib"));
        let entries = library.iter().flat_map(std::fs::read_dir).flatten().flatten();
        let own = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("libnode.so"));
        std::iter::once(self.executable.clone()).chain(own.map(|entry| entry.path())).collect()
    }

    /// The program of `npm` that comes with it, and the folder that this needs.
    pub(crate) fn npm(&self) -> Result<(PathBuf, PathBuf), Fault> {
        let folder = self.executable.parent();
        let beside = folder.map(|folder| folder.join("../lib/node_modules/npm/bin/npm-cli.js"));
        let link = folder.map(|folder| folder.join("npm"));
        let named = beside.into_iter().chain(link).filter_map(|path| path.canonicalize().ok());
        let program = named.into_iter().find(|path| path.ends_with("bin/npm-cli.js"));
        let folder = program.as_deref().and_then(Path::parent).and_then(Path::parent).map(Path::to_owned);
        program.zip(folder).ok_or_else(|| {
            let what = format!("packages are installed by `npm`, and {} has none", self.executable.display());
            Fault::new(Code::InterpreterMissing, what)
        })
    }

    /// Its version.
    pub(crate) fn version(&self) -> String {
        let (major, minor, patch) = self.version;
        format!("{major}.{minor}.{patch}")
    }

    /// Distinguishes it from others, as far as packages and descriptors depend on it.
    pub(crate) fn identity(&self) -> String {
        format!("node {} {} {}", self.version(), self.abi, self.executable.display())
    }
}

/// The programs that may be Node: those of absolute folders of the `PATH`, and the usual ones. One inside the folder that the user works
/// in is not run: it may come with what the user works on.
pub(super) fn candidates(path: &OsStr, closed: Option<&Path>) -> Vec<PathBuf> {
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let named = folders.map(|folder| folder.join("node")).chain(DEFAULT_PATHS.iter().map(PathBuf::from));
    let closed = closed.and_then(|folder| folder.canonicalize().ok());
    let is_closed = |path: &Path| closed.as_deref().is_some_and(|closed| path.starts_with(closed));
    named.filter(|path| path.canonicalize().is_ok_and(|real| real.is_file() && !is_closed(&real))).collect()
}

async fn probe(candidate: &Path) -> Option<Interpreter> {
    let mut command = tokio::process::Command::new(candidate);
    command.args(["-p", PROBE]).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PROBE_TIMEOUT, command.output()).await.ok()?.ok()?;
    serde_json::from_slice(&output.stdout).ok()
}
