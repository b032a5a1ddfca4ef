//! Python: `componentize-py` packs an interpreter and the source into a component. The world consists of what the source imports from
//! the SDK and of the interfaces that the manifest requests.

use std::process::Command;

use holdfast_contract::problem::Problem;

use crate::language::{initialiser, scan};
use crate::project::Project;
use crate::tool::{self, COMPONENTIZE_PY};
use crate::wit::WORLD;
use crate::{BuildStep, files, sdk};

/// The entry module of the component, which imports the author's module.
const ENTRY: &str = "holdfast_entry";

pub(crate) fn build(project: &Project, progress: &mut dyn FnMut(BuildStep)) -> Result<Vec<u8>, Problem> {
    let program = COMPONENTIZE_PY.require()?;
    let sources = project.sources(&["py"])?;
    let world = scan::world(project, &sources, scan::python)?;
    let temporary = files::temporary()?;
    let (wit, code) = (temporary.path().join("wit"), temporary.path().join("code"));
    world.write(&wit)?;
    sdk::write_python(&code)?;
    // A copy, because the interpreter writes caches beside the files that it loads.
    for source in &sources {
        files::write(&code.join(source), files::read_text(&project.folder.join(source))?.as_bytes())?;
    }
    let module = project.main.trim_end_matches(".py");
    let classes: Vec<_> = world.exports.iter().map(|name| camel(name)).collect();
    let entry = format!("import {module}\nfrom holdfast_abi import {}\n", classes.join(", "));
    files::write(&code.join(format!("{ENTRY}.py")), entry.as_bytes())?;
    progress(BuildStep::Compile("componentize-py".to_owned()));
    let output = temporary.path().join("component.wasm");
    let mut command = Command::new(program);
    command.arg("--wit-path").arg(&wit).args(["--world", WORLD, "--quiet", "componentize", "--stub-wasi"]);
    command.arg("--python-path").arg(&code);
    let vendor = project.folder.join("vendor");
    if vendor.is_dir() {
        command.arg("--python-path").arg(vendor);
    }
    command.arg(ENTRY).arg("--output").arg(&output).current_dir(temporary.path()).env_remove("VIRTUAL_ENV");
    tool::compile("componentize-py", &mut command)?;
    let bytes = files::read(&output)?;
    Ok(initialiser::removed(bytes))
}

/// `tool-gate` as `ToolGate`.
fn camel(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
            .unwrap_or_default()
    };
    name.split('-').map(word).collect()
}
