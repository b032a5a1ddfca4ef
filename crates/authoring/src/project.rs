//! The project in a folder: the manifest, the language, and the path of the component.
//!
//! The language is detected by the files: `Cargo.toml` is Rust, `main.py` Python, `main.js` or `main.mjs` JavaScript, `main.c` C. Without
//! a `main`, a single source file is enough. Two languages are an error that names them.

use std::path::{Path, PathBuf};

use holdfast_contract::manifest::{self, Manifest};
use holdfast_contract::problem::{Code, Location, Problem};

use crate::files;
use crate::language::Language;

/// An extension's source.
pub(crate) struct Project {
    pub(crate) folder: PathBuf,
    pub(crate) manifest: Manifest,
    pub(crate) language: Language,
    /// The main file; for Rust its `Cargo.toml`.
    pub(crate) main: String,
    /// The component's file.
    pub(crate) component: PathBuf,
}

/// The largest manifest that is read.
const MAX_MANIFEST_BYTES: u64 = 16 << 20;

/// Reads a folder.
pub(crate) fn read(folder: &Path) -> Result<Project, Problem> {
    let folder = folder.canonicalize().map_err(|error| files::unusable(folder, "read", &error))?;
    let path = folder.join("manifest.yaml");
    if !path.exists() {
        let what = format!("{} has no manifest.yaml", folder.display());
        let help = "Give the folder of an extension, or create one with `holdfast ext new`.";
        return Err(Problem::new(Code::BuildFailed, what).help(help));
    }
    let bytes = holdfast_untrusted_files::read(&path, MAX_MANIFEST_BYTES)
        .map_err(|error| files::unusable(&path, "read", &error.into()))?;
    let manifest = manifest::parse_bytes(&path, &bytes)?.manifest;
    let component = component(&folder, &manifest, &path)?;
    let (language, main) = language(&folder)?;
    Ok(Project { folder, manifest, language, main, component })
}

/// The path of the component: the manifest's `entrypoint`, or one made from the id.
fn component(folder: &Path, manifest: &Manifest, path: &Path) -> Result<PathBuf, Problem> {
    let Some(entrypoint) = &manifest.entrypoint else {
        return Ok(folder.join(format!("{}.wasm", manifest.id)));
    };
    let inside = Path::new(entrypoint)
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir));
    if entrypoint.ends_with(".wasm") && inside {
        return Ok(folder.join(entrypoint));
    }
    let what =
        format!("`entrypoint` is `{entrypoint}`, but a component must be a `.wasm` file in the folder");
    let location =
        Location { file: path.to_owned(), field: Some("entrypoint".to_owned()), ..Location::default() };
    Err(Problem::new(Code::BuildFailed, what)
        .at(location)
        .help(format!("Write `entrypoint: {}.wasm`.", manifest.id)))
}

/// The language, and the main file.
fn language(folder: &Path) -> Result<(Language, String), Problem> {
    let names = files::names(folder)?;
    let main = |name: &str| names.iter().any(|found| found == name).then(|| name.to_owned());
    let mut found = Vec::new();
    found.extend(main("Cargo.toml").map(|name| (Language::Rust, name)));
    found.extend(main("main.py").map(|name| (Language::Python, name)));
    found.extend(main("main.js").or_else(|| main("main.mjs")).map(|name| (Language::JavaScript, name)));
    found.extend(main("main.c").map(|name| (Language::C, name)));
    if found.is_empty() {
        found.extend(single(&names, &["py"]).map(|name| (Language::Python, name)));
        found.extend(single(&names, &["js", "mjs"]).map(|name| (Language::JavaScript, name)));
        found.extend(single(&names, &["c"]).map(|name| (Language::C, name)));
    }
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            let what = format!("{} has no source that can be built", folder.display());
            let help = "Add a `Cargo.toml`, `main.py`, `main.js` or `main.c`.";
            Err(Problem::new(Code::BuildFailed, what).help(help))
        }
        several => {
            let list: Vec<_> =
                several.iter().map(|(language, name)| format!("`{name}` ({language})")).collect();
            let what = format!("{} has sources in several languages: {}", folder.display(), list.join(", "));
            Err(Problem::new(Code::BuildFailed, what).help("Keep one of them in the folder."))
        }
    }
}

/// The only file with one of these extensions, if there is exactly one.
fn single(names: &[String], endings: &[&str]) -> Option<String> {
    let mut fitting = names.iter().filter(|name| {
        let ending = name.rsplit_once('.').map(|(_, ending)| ending);
        ending.is_some_and(|ending| endings.contains(&ending))
    });
    let first = fitting.next()?;
    fitting.next().is_none().then(|| first.clone())
}

impl Project {
    /// Source files with one of these extensions, recursively, as relative paths.
    pub(crate) fn sources(&self, endings: &[&str]) -> Result<Vec<PathBuf>, Problem> {
        let mut found = Vec::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(inside) = folders.pop() {
            for name in files::names(&self.folder.join(&inside))? {
                let path = inside.join(&name);
                let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
                if self.folder.join(&path).is_dir() {
                    // Hidden folders, caches and third-party packages are not part of the extension's source.
                    let foreign = ["__pycache__", "node_modules", "target", "vendor", "venv"];
                    if !name.starts_with('.') && !foreign.contains(&name.as_str()) {
                        folders.push(path);
                    }
                } else if endings.contains(&ending) {
                    found.push(path);
                }
            }
        }
        found.sort();
        Ok(found)
    }
}
