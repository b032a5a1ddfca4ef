//! The last steps of every build: a core module is encoded as a component, and the component is checked.

use holdfast_contract::problem::{Code, Problem};
use wasmparser::{Parser, Payload, Validator};
use wit_component::{ComponentEncoder, DecodedWasm, StringEncoding};

use crate::wit::{self, World};

/// The interfaces that a core module exports and imports, by the names of its functions. For languages whose modules do not describe
/// their types.
pub(crate) fn world_of_module(module: &[u8]) -> Result<World, Problem> {
    let broken = |error: wasmparser::BinaryReaderError| {
        Problem::new(Code::BuildFailed, format!("the compiler produced an invalid module: {error}"))
    };
    let mut world = World::default();
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(broken)? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import.map_err(broken)?;
                    match wit::own_interface(import.module)? {
                        Some(interface) => world.imports.insert(interface.to_owned()),
                        None => return Err(foreign(import.module, import.name)),
                    };
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export.map_err(broken)?;
                    if let Some((full, _)) = export.name.split_once('#')
                        && let Some(interface) = wit::own_interface(full)?
                    {
                        world.exports.insert(interface.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    Ok(world)
}

fn foreign(module: &str, name: &str) -> Problem {
    let what = format!("the module imports `{name}` from `{module}`, which is not available");
    let help = "Define every function that is declared, and do not use the C library: a component has neither files nor a libc.";
    Problem::new(Code::BuildFailed, what).help(help)
}

/// Writes the world into a module that does not describe its types.
pub(crate) fn describe(module: &mut Vec<u8>, world: &World) -> Result<(), Problem> {
    let (resolve, id) = world.resolve()?;
    wit_component::embed_component_metadata(module, &resolve, id, StringEncoding::UTF8)
        .map_err(|error| failed(&error))
}

/// A component from a module that describes its types.
pub(crate) fn encode(module: &[u8]) -> Result<Vec<u8>, Problem> {
    let encoder = ComponentEncoder::default().module(module).map_err(|error| failed(&error))?;
    encoder.validate(false).encode().map_err(|error| failed(&error))
}

fn failed(error: &dyn std::fmt::Debug) -> Problem {
    Problem::new(Code::BuildFailed, format!("the module cannot be encoded as a component: {error:?}"))
        .help("Use the SDK of this program; `holdfast ext new` shows how.")
}

/// Validates a component and returns its exports and imports. Fails if the host would refuse it.
pub(crate) fn check(bytes: &[u8]) -> Result<World, Problem> {
    let invalid = |error: &dyn std::fmt::Display| {
        Problem::new(Code::BuildFailed, format!("the component is not valid: {error}"))
    };
    Validator::new().validate_all(bytes).map_err(|error| invalid(&error))?;
    let world = read(bytes)?;
    world.check()?;
    Ok(world)
}

/// What a component exports and imports. Interfaces that only have types are left out.
fn read(bytes: &[u8]) -> Result<World, Problem> {
    let invalid = |error: &dyn std::fmt::Display| {
        Problem::new(Code::BuildFailed, format!("the component is not valid: {error}"))
    };
    let decoded = wit_component::decode(bytes).map_err(|error| invalid(&error))?;
    let DecodedWasm::Component(resolve, id) = decoded else {
        return Err(invalid(&"it is an interface, not a component"));
    };
    let mut found = World::default();
    let decoded = &resolve.worlds[id];
    for (key, _) in &decoded.imports {
        let full = resolve.name_world_key(key);
        let Some(name) = wit::own_interface(&full)? else {
            let what = format!("the component imports `{full}`, which is not available");
            let help = "Use the SDK instead: time, random values and persistent values are host calls.";
            return Err(Problem::new(Code::BuildFailed, what).help(help));
        };
        if wit::kind(name)? != Some(wit::ComponentKind::Types) {
            found.imports.insert(name.to_owned());
        }
    }
    for (key, _) in &decoded.exports {
        let full = resolve.name_world_key(key);
        let Some(name) = wit::own_interface(&full)? else {
            let what =
                format!("the component exports `{full}`, which is not an interface of `{}`", wit::PACKAGE);
            let help = "Use the toolchain version in `holdfast docs extensions`.";
            return Err(Problem::new(Code::BuildFailed, what).help(help));
        };
        found.exports.insert(name.to_owned());
    }
    Ok(found)
}
