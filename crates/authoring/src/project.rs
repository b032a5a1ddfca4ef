//! What a folder holds: the manifest, the language, where the component goes.
//!
//! The language is found by the files: `Cargo.toml` is Rust, `main.py` Python, `main.js` or `main.mjs` JavaScript, `main.c` C. Without
//! a `main`, files of one language alone will do. Two languages are a problem that names them.

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
    /// The file to begin with; for Rust its `Cargo.toml`.
    pub(crate) main: String,
    /// The component's file.
    pub(crate) component: PathBuf,
}

/// Reads a folder.
pub(crate) fn read(folder: &Path) -> Result<Project, Problem> {
    let folder = folder.canonicalize().map_err(|error| files::unusable(folder, "read", &error))?;
    let path = folder.join("manifest.yaml");
    if !path.exists() {
        let what = format!("{} has no manifest.yaml", folder.display());
        let help = "Name an extension's folder, or make one with `holdfast ext new`.";
        return Err(Problem::new(Code::BuildFailed, what).help(help));
    }
    let bytes = std::fs::read(&path).map_err(|error| files::unusable(&path, "read", &error))?;
    let manifest = manifest::parse_bytes(&path, &bytes)?.manifest;
    let component = component(&folder, &manifest, &path)?;
    let (language, main) = language(&folder)?;
    Ok(Project { folder, manifest, language, main, component })
}

/// Where the component goes: what `entrypoint` names, or the id's.
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
    let what = format!("`entrypoint` is `{entrypoint}`, and a component is a `.wasm` file in the folder");
    let location =
        Location { file: path.to_owned(), field: Some("entrypoint".to_owned()), ..Location::default() };
    Err(Problem::new(Code::BuildFailed, what)
        .at(location)
        .help(format!("Write `entrypoint: {}.wasm`.", manifest.id)))
}

/// The language, and the file to begin with.
fn language(folder: &Path) -> Result<(Language, String), Problem> {
    let names = files::names(folder)?;
    let main = |name: &str| names.iter().any(|found| found == name).then(|| name.to_owned());
    let mut found = Vec::new();
    found.extend(main("Cargo.toml").map(|name| (Language::Rust, name)));
    found.extend(main("main.py").map(|name| (Language::Python, name)));
    found.extend(main("main.js").or_else(|| main("main.mjs")).map(|name| (Language::JavaScript, name)));
    found.extend(main("main.c").map(|name| (Language::C, name)));
    if found.is_empty() {
        found.extend(alone(&names, &["py"]).map(|name| (Language::Python, name)));
        found.extend(alone(&names, &["js", "mjs"]).map(|name| (Language::JavaScript, name)));
        found.extend(alone(&names, &["c"]).map(|name| (Language::C, name)));
    }
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            let what = format!("{} holds no source that can be built", folder.display());
            let help = "Add a `Cargo.toml`, `main.py`, `main.js` or `main.c`.";
            Err(Problem::new(Code::BuildFailed, what).help(help))
        }
        several => {
            let list: Vec<_> =
                several.iter().map(|(language, name)| format!("`{name}` ({language})")).collect();
            let what =
                format!("{} could be built in more than one way: {}", folder.display(), list.join(", "));
            Err(Problem::new(Code::BuildFailed, what).help("Keep one of them in the folder."))
        }
    }
}

/// The only file that ends so.
fn alone(names: &[String], endings: &[&str]) -> Option<String> {
    let mut fitting = names.iter().filter(|name| {
        let ending = name.rsplit_once('.').map(|(_, ending)| ending);
        ending.is_some_and(|ending| endings.contains(&ending))
    });
    let first = fitting.next()?;
    fitting.next().is_none().then(|| first.clone())
}

impl Project {
    /// Source files with one of these endings, in the folder and below, as paths within it.
    pub(crate) fn sources(&self, endings: &[&str]) -> Result<Vec<PathBuf>, Problem> {
        let mut found = Vec::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(inside) = folders.pop() {
            for name in files::names(&self.folder.join(&inside))? {
                let path = inside.join(&name);
                let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
                if self.folder.join(&path).is_dir() {
                    // Hidden folders, caches and other people's packages are not the extension's own source.
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
