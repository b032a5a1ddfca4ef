//! The workspace as files and crates: what the rules are asked about.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A file of the workspace: its path from the root, with forward slashes, and its text.
#[derive(Clone, Debug)]
pub struct File {
    /// The path.
    pub path: String,
    /// The text.
    pub text: String,
}

impl File {
    /// A file as a rule would meet it.
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Whether it is there for tests only.
    pub fn is_test(&self) -> bool {
        let parts: Vec<&str> = self.path.split('/').collect();
        let support = ["tests/", "benches/", "crates/testkit/"];
        support.iter().any(|folder| self.path.starts_with(folder))
            || parts.iter().any(|&part| part == "tests" || part == "tests.rs")
            || parts.last().is_some_and(|name| name.ends_with("_tests.rs"))
    }
}

/// A crate of the workspace.
#[derive(Clone, Debug)]
pub struct Crate {
    /// The package's name.
    pub name: String,
    /// Its folder from the root: `crates/lane-native`.
    pub folder: String,
    /// The names of its normal and build dependencies.
    pub dependencies: Vec<String>,
}

/// The workspace's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every file with one of these endings, outside build output and hidden folders, in order.
pub fn files(endings: &[&str]) -> Vec<File> {
    let root = root();
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let skipped = name.starts_with('.') || name == "target" || name == "node_modules";
            if path.is_dir() && !path.is_symlink() && !skipped {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| endings.iter().any(|wanted| ending == *wanted)) {
                let relative = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
                files.push(File { path: relative, text: fs::read_to_string(&path).unwrap() });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// What cargo says of the workspace.
fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).arg("--offline").current_dir(root()).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The dependency tree of the program for this machine with default features: what `cargo run` compiles, a line for each place in the tree.
pub fn dependency_tree() -> String {
    cargo(&["tree", "--locked", "--package", "holdfast", "--edges", "normal,build", "--prefix", "none"])
}

/// Every crate of the workspace, as cargo sees it.
pub fn crates() -> Vec<Crate> {
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().map(|package| read_crate(package, &root())).collect()
}

fn read_crate(package: &Value, root: &Path) -> Crate {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    let folder = manifest.parent().unwrap().strip_prefix(root).unwrap();
    let dependencies = package["dependencies"].as_array().unwrap();
    Crate {
        name: package["name"].as_str().unwrap().to_owned(),
        folder: folder.to_string_lossy().replace('\\', "/"),
        dependencies: dependencies
            .iter()
            .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
            .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
            .collect(),
    }
}
