//! Rust: cargo builds a core module, in which the SDK's bindings describe the types of each interface.

use std::path::PathBuf;
use std::process::Command;

use holdfast_contract::problem::{Code, Problem};
use serde_json::Value;

use crate::project::Project;
use crate::tool::{self, CARGO};
use crate::{BuildStep, component, files, sdk};

const TARGET: &str = "wasm32-unknown-unknown";

pub(crate) fn build(project: &Project, progress: &mut dyn FnMut(BuildStep)) -> Result<Vec<u8>, Problem> {
    let cargo = CARGO.require()?;
    progress(BuildStep::Compile("cargo".to_owned()));
    sdk::refresh_rust(&project.folder)?;
    let mut command = Command::new(cargo);
    command
        .args(["build", "--release", "--target", TARGET, "--message-format=json-render-diagnostics"])
        .current_dir(&project.folder)
        .env("CARGO_TERM_COLOR", "never")
        // A cargo that runs this program sets them, and they would affect the one that it runs.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    let output = tool::run(&mut command)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(without_target(&said).unwrap_or_else(|| tool::failed("cargo", &said)));
    }
    let module = module(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| {
        let what = "cargo built no module: the crate is not a `cdylib`";
        Problem::new(Code::BuildFailed, what)
            .help("Write `crate-type = [\"cdylib\"]` under `[lib]` in Cargo.toml.")
    })?;
    progress(BuildStep::Encode);
    let bytes = files::read(&module)?;
    component::world_of_module(&bytes)?.check()?;
    component::encode(&bytes)
}

/// The error that the compiler has no standard library for the target.
fn without_target(said: &str) -> Option<Problem> {
    let missing = said.contains("can't find crate for `core`") || said.contains("can't find crate for `std`");
    (missing && said.contains(TARGET)).then(|| {
        let what = format!("the Rust compiler has no standard library for {TARGET}");
        Problem::new(Code::BuildTool, what).help(format!("Run `rustup target add {TARGET}`."))
    })
}

/// The module's file, from cargo's messages. The last artifact is the extension's; its dependencies precede it.
fn module(messages: &str) -> Option<PathBuf> {
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut modules =
        artifacts.filter(|message| message["reason"] == "compiler-artifact").filter_map(|message| {
            let files = message["filenames"].as_array()?;
            let file = files.iter().filter_map(Value::as_str).find(|file| file.ends_with(".wasm"))?;
            Some(PathBuf::from(file))
        });
    modules.next_back()
}
