//! The Node of this machine, found once, as the user's shell would find it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use holdfast_contract::problem::{Code, Fault};
use holdfast_untrusted_files::{FoundPrograms, ProgramSearch};
use serde::Deserialize;

use crate::python::interpreter::skipped_text;

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
    /// The first on the `PATH` that is new enough and lies in none of the folders that agents can write, and what was left out on the way
    /// to it.
    pub(crate) async fn find(agent_folders: &[PathBuf]) -> Result<(Self, Vec<PathBuf>), Fault> {
        let search = ProgramSearch::new(std::env::var_os("PATH").as_deref(), agent_folders);
        let FoundPrograms { programs, mut skipped } = candidates(&search);
        let mut too_old = None;
        for candidate in programs {
            match probe(&candidate).await {
                // A wrapper script chooses what it runs.
                Some(found) if search.avoids(&found.executable) => skipped.push(candidate),
                Some(found) if (found.version.0, found.version.1) >= MIN_VERSION => {
                    return Ok((found, skipped));
                }
                Some(old) => too_old = Some(format!("{} is {}", old.executable.display(), old.version())),
                None => {}
            }
        }
        let (major, minor) = MIN_VERSION;
        let mut why = too_old.unwrap_or_else(|| "there is no `node` on the `PATH`".to_owned());
        if !skipped.is_empty() {
            why.push_str(&format!("; {}", skipped_text(&skipped)));
        }
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

/// The programs that may be Node: those of the search path, and the usual ones.
pub(super) fn candidates(search: &ProgramSearch) -> FoundPrograms {
    let mut found = search.find("node");
    let usual = DEFAULT_PATHS.iter().map(PathBuf::from);
    found.programs.extend(usual.filter(|path| path.is_file() && !search.avoids(path)));
    found
}

async fn probe(candidate: &Path) -> Option<Interpreter> {
    let mut command = tokio::process::Command::new(candidate);
    command.args(["-p", PROBE]).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PROBE_TIMEOUT, command.output()).await.ok()?.ok()?;
    serde_json::from_slice(&output.stdout).ok()
}
