//! The Python interpreter of this machine: the first on the `PATH` that is new enough, except what agents could have put there. It is asked
//! for its version by a confined process without the user's environment, so that finding one runs nothing of anybody with rights.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_contract::problem::{Code, Fault};
use holdfast_program::keep_home_closed;
use holdfast_sandbox::SandboxReport;
use holdfast_untrusted_files::{ProgramSearch, open_regular, places};
use serde::Deserialize;

use crate::python::step::confined_step;

/// The oldest Python version that the worker supports.
const MIN_VERSION: (u32, u32) = (3, 10);
/// Candidates besides the `PATH`.
const DEFAULT_PATHS: &[&str] = &["/usr/local/bin/python3", "/usr/bin/python3"];
/// How long a candidate may take to report its version.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Reports the interpreter itself: its name may be a link or a wrapper script, which extensions could not follow.
const PROBE: &str = "import json,sys;print(json.dumps({'executable':sys.executable,'version':sys.version_info[:3],\
                        'prefix':sys.base_prefix,'implementation':sys.implementation.cache_tag or sys.implementation.name}))";

/// The libraries that Python and its standard library are linked with.
const LIBRARIES: &[&str] = &[
    "python", "ssl", "crypto", "ffi", "z", "bz2", "lzma", "sqlite3", "expat", "uuid", "readline", "ncurses",
    "tinfo", "panel", "mpdec", "gcc_s", "stdc++", "tcl", "tk", "gdbm", "intl",
];

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

/// An interpreter, and what was left out on the way to it.
#[derive(Debug)]
pub(crate) struct FoundInterpreter {
    pub interpreter: Interpreter,
    /// Programs that lie in folders that agents can write.
    pub skipped: Vec<PathBuf>,
}

impl Interpreter {
    /// The first on this path that is new enough and lies in none of the folders that agents can write. Blocks until it has answered.
    pub(crate) fn find(
        path: Option<&OsStr>,
        agent_folders: &[PathBuf],
        home: &Path,
        report: &SandboxReport,
    ) -> Result<FoundInterpreter, Fault> {
        let search = ProgramSearch::new(path, agent_folders);
        let named = search.find("python3");
        let (mut skipped, mut unusable) = (named.skipped, None);
        let usual = DEFAULT_PATHS.iter().map(PathBuf::from);
        let usual = usual.filter(|path| path.is_file() && !search.avoids(path));
        for candidate in named.programs.into_iter().chain(usual) {
            let found = match probe(&candidate, home, report) {
                Ok(found) => found,
                Err(why) => {
                    unusable.get_or_insert(format!("{} {why}", candidate.display()));
                    continue;
                }
            };
            // A wrapper script chooses what it runs.
            if !found.is_outside(&search) {
                skipped.push(candidate);
            } else if (found.version.0, found.version.1) < MIN_VERSION {
                unusable.get_or_insert(format!("{} is {}", found.executable.display(), found.version()));
            } else {
                return Ok(FoundInterpreter { interpreter: found, skipped });
            }
        }
        let (major, minor) = MIN_VERSION;
        let mut why = unusable.unwrap_or_else(|| "there is no `python3` on the `PATH`".to_owned());
        if !skipped.is_empty() {
            why.push_str(&format!("; {}", skipped_text(&skipped)));
        }
        let what = format!("Python {major}.{minor} or later is needed: {why}");
        Err(Fault::new(Code::InterpreterMissing, what))
    }

    /// Whether it lies in none of the folders that agents can write.
    pub(crate) fn is_outside(&self, search: &ProgramSearch) -> bool {
        !search.avoids(&self.executable) && !search.avoids(&self.prefix)
    }
}

/// What was skipped, and why.
pub(crate) fn skipped_text(skipped: &[PathBuf]) -> String {
    let shown: Vec<_> = skipped.iter().map(|path| path.display().to_string()).collect();
    format!("skipped, because agents can write there: {}", shown.join(", "))
}

impl FoundInterpreter {
    /// What to tell the user about what was left out.
    pub(crate) fn warning(&self) -> Option<String> {
        let used = self.interpreter.executable.display();
        (!self.skipped.is_empty()).then(|| format!("{}; {used} is used", skipped_text(&self.skipped)))
    }
}

/// Asks a candidate what it is. The error says why it cannot be used.
fn probe(candidate: &Path, home: &Path, report: &SandboxReport) -> Result<Interpreter, String> {
    let program = candidate.to_str().ok_or("has a path that is not UTF-8")?;
    let readable = readable_to(candidate, home);
    let words = [program, "-I", "-S", "-c", PROBE];
    let output = confined_step(&words, &readable, None, PROBE_TIMEOUT, report)
        .map_err(|fault| format!("could not be asked for its version: {}", fault.message))?;
    serde_json::from_slice(&output).map_err(|_| "did not report its version".to_owned())
}

/// What a candidate may read to start: itself, its library, and of a wrapper script what lies beside it. Nothing that contains the
/// home.
fn readable_to(candidate: &Path, home: &Path) -> Vec<PathBuf> {
    let mut programs: BTreeSet<PathBuf> = places(candidate).into_iter().collect();
    programs.insert(candidate.to_owned());
    let mut readable: Vec<PathBuf> = programs.iter().cloned().collect();
    for prefix in programs.iter().filter_map(|program| program.parent()?.parent()) {
        readable.extend(["bin", "pyvenv.cfg"].map(|name| prefix.join(name)));
        for folder in ["lib", "lib64"].map(|name| prefix.join(name)) {
            readable.extend(libraries(&folder));
            readable.extend(shared_libraries(&folder));
        }
    }
    if let Some(folder) = candidate.parent().and_then(Path::parent).filter(|_| is_script(candidate)) {
        readable.push(folder.to_owned());
    }
    readable.retain(|path| path.exists() && keep_home_closed(home, std::slice::from_ref(path)).is_ok());
    readable
}

/// The folders of Python's library in a folder of libraries.
fn libraries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
    named.map(|entry| entry.path()).collect()
}

/// Whether a program is a wrapper, as version managers have them.
fn is_script(program: &Path) -> bool {
    let mut begin = [0; 2];
    let opened = open_regular(File::options().read(true), program);
    opened.is_ok_and(|file| file.read_exact_at(&mut begin, 0).is_ok()) && &begin == b"#!"
}
