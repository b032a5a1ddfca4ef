//! Builds native plugins with the machine's own compilers.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

fn run(command: &mut Command) {
    let ran = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// The library of a plugin in C, without a warning.
pub fn in_c(source: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("plugin.so");
    let flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-O1", "-I"];
    let mut command = Command::new("cc");
    run(command.args(flags).arg(root().join("sdk/c")).arg("-o").arg(&library).arg(root().join(source)));
    std::fs::read(library).unwrap()
}

/// The library of a plugin in Rust. All of them share what they depend on.
pub fn in_rust(project: &str, name: &str) -> Vec<u8> {
    let target = root().join("target/plugins");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--offline", "--quiet", "--manifest-path"]);
    run(command.arg(root().join(project).join("Cargo.toml")).arg("--target-dir").arg(&target));
    let prefix = std::env::consts::DLL_PREFIX;
    let suffix = std::env::consts::DLL_SUFFIX;
    std::fs::read(target.join("debug").join(format!("{prefix}{name}{suffix}"))).unwrap()
}
