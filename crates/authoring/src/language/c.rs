//! C: `zig cc` or a `clang` with wasm32 support. The header is embedded in the program; the world is derived from the module's exports.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use holdfast_contract::problem::Problem;

use crate::project::Project;
use crate::tool::{self, ZIG};
use crate::{BuildStep, component, files, sdk};

/// Whether Python has zig as a package, and zig as that package runs it: without the current folder, whose modules would come first.
const HAS_ZIG: &str = "import sys; sys.path.remove(''); import ziglang";
const RUN_ZIG: &str = "import sys; sys.path.remove(''); import runpy; \
                       runpy.run_module('ziglang', run_name='__main__', alter_sys=True)";

pub(crate) fn build(project: &Project, progress: &mut dyn FnMut(BuildStep)) -> Result<Vec<u8>, Problem> {
    let (name, mut compiler) = compiler()?;
    progress(BuildStep::Compile(name.to_owned()));
    let temporary = files::temporary()?;
    let include = temporary.path().join("include");
    sdk::write_c(&include)?;
    let output = temporary.path().join("module.wasm");
    compiler
        .args(["-std=c11", "-Os", "-nostdlib", "-ffreestanding", "-Wall", "-Wextra"])
        .args(["-Wl,--no-entry", "-Wl,--export-memory", "-Wl,--strip-all"])
        .arg("-I")
        .arg(&include)
        .arg("-I")
        .arg(&project.folder)
        .arg("-o")
        .arg(&output)
        .args(project.sources(&["c"])?)
        // Messages have paths relative to the author's folder, and the compiler's cache is outside of it.
        .current_dir(&project.folder)
        .env("ZIG_LOCAL_CACHE_DIR", temporary.path().join("cache"));
    tool::compile(name, &mut compiler)?;
    progress(BuildStep::Encode);
    let mut module = files::read(&output)?;
    let world = component::world_of_module(&module)?;
    world.check()?;
    component::describe(&mut module, &world)?;
    component::encode(&module)
}

/// zig, as a program or as a Python package, else a clang for wasm32.
fn compiler() -> Result<(&'static str, Command), Problem> {
    let zig = |mut command: Command| {
        command.args(["cc", "--target=wasm32-freestanding"]);
        ("zig cc", command)
    };
    if let Some(found) = ZIG.find() {
        return Ok(zig(Command::new(found)));
    }
    if let Some(python) = tool::on_path(&OsString::from("python3")) {
        let packaged = tool::run(Command::new(&python).args(["-c", HAS_ZIG]))?.status.success();
        if packaged {
            let mut command = Command::new(python);
            command.args(["-c", RUN_ZIG]);
            return Ok(zig(command));
        }
    }
    match tool::on_path(&OsString::from("clang")) {
        Some(clang) if supports_wasm(&clang)? => {
            let mut command = Command::new(clang);
            command.arg("--target=wasm32-unknown-unknown");
            Ok(("clang", command))
        }
        _ => Err(ZIG.missing()),
    }
}

/// Whether a clang supports wasm32, for which it also needs a linker.
fn supports_wasm(clang: &Path) -> Result<bool, Problem> {
    let targets = tool::run(Command::new(clang).arg("--print-targets"))?;
    Ok(tool::output_text(&targets).contains("wasm32") && tool::on_path(&OsString::from("wasm-ld")).is_some())
}
