//! JavaScript: `componentize-qjs` packs an interpreter and the source into a component. The world consists of what the source imports
//! from the SDK and of the interfaces that the manifest requests.

use std::path::{Path, PathBuf};
use std::process::Command;

use holdfast_contract::problem::{Code, Location, Problem};

use crate::language::scan::SdkImports;
use crate::language::{initialiser, scan};
use crate::project::Project;
use crate::tool::{self, COMPONENTIZE_QJS};
use crate::wit::{PACKAGE, VERSION, WORLD, World};
use crate::{BuildStep, files, sdk};

/// The entry module of the component, which imports the author's module.
const ENTRY: &str = "holdfast-entry.js";

pub(crate) fn build(project: &Project, progress: &mut dyn FnMut(BuildStep)) -> Result<Vec<u8>, Problem> {
    let sources = project.sources(&["js", "mjs", "json"])?;
    check_names(project, &sources)?;
    let program = COMPONENTIZE_QJS.require()?;
    let world = scan::world(project, &sources, scan::javascript)?;
    let temporary = files::temporary()?;
    let (wit, code) = (temporary.path().join("wit"), temporary.path().join("code"));
    world.write(&wit)?;
    // A copy, because the SDK is written into its `node_modules`.
    for source in &sources {
        files::write(&code.join(source), files::read_text(&project.folder.join(source))?.as_bytes())?;
    }
    let packages = project.folder.join("node_modules");
    if packages.is_dir() {
        copy_folder(&packages, &code.join("node_modules"))?;
    }
    sdk::write_javascript(&code.join("node_modules/holdfast"), &host(&world))?;
    let entry = code.join(ENTRY);
    files::write(&entry, entry_module(&world, &project.main).as_bytes())?;
    progress(BuildStep::Compile("componentize-qjs".to_owned()));
    let output = temporary.path().join("component.wasm");
    let mut command = Command::new(program);
    command.arg("--wit").arg(&wit).args(["--world", WORLD, "--sync", "--stub-wasi", "--opt-size"]);
    command.arg("--js").arg(&entry).arg("--module-root").arg(&code).arg("--output").arg(&output);
    tool::compile("componentize-qjs", command.current_dir(&code))?;
    let bytes = files::read(&output)?;
    Ok(initialiser::removed(bytes))
}

/// Refuses an import of what the SDK does not have: the module would fail when it is loaded, and say nothing of it.
fn check_names(project: &Project, sources: &[PathBuf]) -> Result<(), Problem> {
    let known = sdk::javascript_names();
    for source in sources {
        let path = project.folder.join(source);
        let SdkImports::Names(names) = scan::javascript(&files::read_text(&path)?) else { continue };
        if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
            let problem = Problem::unknown(Code::BuildFailed, "name in the SDK", name, &known, "");
            return Err(problem.at(Location { file: path, ..Location::default() }));
        }
    }
    Ok(())
}

/// The module that imports the host: an import that the world does not have would fail, so each world has its own module.
fn host(world: &World) -> String {
    let import = |name: &String| format!("import {name} from \"{PACKAGE}/{name}@{VERSION}\";\n");
    let imports: String = world.imports.iter().map(import).collect();
    let names: Vec<_> = world.imports.iter().map(String::as_str).collect();
    format!("{imports}export const host = {{ {} }};\n", names.join(", "))
}

fn entry_module(world: &World, main: &str) -> String {
    let mut text = format!("import {{ roles }} from \"holdfast\";\nimport \"./{main}\";\n");
    for name in &world.exports {
        let name = camel(name);
        text.push_str(&format!("export const {name} = roles.{name};\n"));
    }
    text
}

/// `tool-gate` as `toolGate`.
fn camel(name: &str) -> String {
    let mut camel = String::new();
    let mut raise = false;
    for letter in name.chars() {
        match letter {
            '-' => raise = true,
            letter if raise => {
                camel.push(letter.to_ascii_uppercase());
                raise = false;
            }
            letter => camel.push(letter),
        }
    }
    camel
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), Problem> {
    for name in files::names(from)? {
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() {
            copy_folder(&from, &to)?;
        } else {
            let bytes = files::read(&from)?;
            files::write(&to, &bytes)?;
        }
    }
    Ok(())
}
