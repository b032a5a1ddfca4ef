//! What a component exports and imports, read from its type before anything is linked or run.

use holdfast_contract::hook::HookPoint;
use holdfast_contract::host_call::GrantRule;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::Grants;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::role::Role;
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::{Component as ComponentType, ComponentInstance, ComponentItem};

use crate::component::compiler::compile_limited;
use crate::component::engine;
use crate::component::nesting;
use crate::faults::{fault, one_line};
use crate::host::wasi;
use crate::wit::functions::Shape;
use crate::wit::interfaces::{Function, IMPORTS, Name, PACKAGE, VERSION, is_planned};
use holdfast_contract::sandbox::SandboxOptions;

/// What a component exports and imports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Its roles.
    pub roles: Vec<Role>,
    /// The exported interfaces, by short name, in the order of `wit/`.
    pub exports: Vec<&'static str>,
    /// The hook points that it serves, in the order of a turn.
    pub hook_points: Vec<HookPoint>,
    /// The imported interfaces, by full name.
    pub imports: Vec<String>,
    /// Whether a call can wait for the host.
    pub waits: bool,
}

/// Inspects a component without running any of it: its roles, its imports, and whether the grants cover them. The id is for the
/// commands in error messages.
pub fn inspect(id: &ExtensionId, bytes: &[u8], grants: &Grants) -> Result<Inspection, Problem> {
    let options = SandboxOptions::default();
    let engine = engine::for_inspection(&options)?;
    let component = compile_limited(&engine, &options, bytes).map_err(Problem::from)?;
    inspect_compiled(&engine, &component, id, grants).map_err(Problem::from)
}

/// Compiles a component.
pub(crate) fn compile(engine: &Engine, bytes: &[u8]) -> Result<Component, Fault> {
    const COMPONENT: [u8; 8] = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];
    let invalid = |message: String| Fault::new(Code::ComponentInvalid, message);
    match bytes.first_chunk::<8>() {
        Some(&COMPONENT) => {}
        Some([0, b'a', b's', b'm', 1, 0, 0, 0]) => {
            return Err(invalid("the file is a core module, not a component".to_owned()));
        }
        _ => return Err(invalid("the file does not have the header of a component".to_owned())),
    }
    nesting::check(bytes)?;
    Component::from_binary(engine, bytes).map_err(|error| match fault(&error) {
        limit if limit.code == Code::MemoryExhausted => limit,
        _ => invalid(format!("the engine rejects it: {}", one_line(&error.root_cause().to_string()))),
    })
}

/// Reads a compiled component's type.
pub(crate) fn inspect_compiled(
    engine: &Engine,
    component: &Component,
    id: &ExtensionId,
    grants: &Grants,
) -> Result<Inspection, Fault> {
    let whole = component.component_type();
    let mut found = Inspection::default();
    for (name, export) in whole.exports(engine) {
        found.exports.push(exported(engine, &whole, name, &export.ty)?);
    }
    if found.exports.is_empty() {
        return Err(Fault::new(Code::ComponentExport, "it exports no interface, so it has no role"));
    }
    let order =
        |interface: &&str| Function::ALL.iter().position(|function| function.interface() == *interface);
    found.exports.sort_by_key(order);
    let functions = || Function::ALL.iter().filter(|function| found.exports.contains(&function.interface()));
    found.roles = functions().map(|function| function.role()).collect();
    found.roles.sort();
    found.roles.dedup();
    let points: Vec<_> = functions().filter_map(|function| function.point()).collect();
    found.hook_points = HookPoint::ALL.iter().filter(|point| points.contains(point)).copied().collect();
    for (name, import) in whole.imports(engine) {
        imported(name, &import.ty, id, grants)?;
        found.waits |= waits(name);
        found.imports.push(name.to_owned());
    }
    Ok(found)
}

/// Whether functions of an imported interface can wait for the host.
fn waits(import: &str) -> bool {
    let name = Name::parse(import);
    wasi::waits(&name) || IMPORTS.iter().any(|import| import.name == name.interface && import.waits)
}

/// Checks one export and gives its interface.
fn exported(
    engine: &Engine,
    whole: &ComponentType,
    export: &str,
    item: &ComponentItem,
) -> Result<&'static str, Fault> {
    let wrong = |message: String| Fault::new(Code::ComponentExport, message);
    let name = Name::parse(export);
    if name.package != PACKAGE {
        return Err(wrong(format!("it exports `{export}`, which is not an interface of `{PACKAGE}`")));
    }
    same_version(export, &name)?;
    let functions: Vec<_> =
        Function::ALL.iter().filter(|function| function.interface() == name.interface).collect();
    let Some(first) = functions.first() else {
        let interface = name.interface;
        return Err(wrong(if is_planned(interface) {
            format!("it exports `{interface}`, which this program does not offer yet")
        } else {
            format!("it exports `{interface}`, which is not a role")
        }));
    };
    let ComponentItem::ComponentInstance(instance) = item else {
        return Err(wrong(format!("its export `{export}` is not an interface")));
    };
    for function in &functions {
        check(engine, whole, instance, **function)?;
    }
    let known = |name: &str| functions.iter().any(|function| function.name() == name);
    for (item, export) in instance.exports(engine) {
        let is_type = matches!(export.ty, ComponentItem::Type(_));
        if !is_type && !known(item) {
            return Err(wrong(format!(
                "it exports `{item}`, which the interface `{}` does not have",
                name.interface
            )));
        }
    }
    Ok(first.interface())
}

fn check(
    engine: &Engine,
    whole: &ComponentType,
    instance: &ComponentInstance,
    function: Function,
) -> Result<(), Fault> {
    let (interface, name) = (function.interface(), function.name());
    let wrong = |why: String| Fault::new(Code::ComponentExport, format!("its `{interface}.{name}` {why}"));
    match instance.get_export(engine, name).map(|export| export.ty) {
        Some(ComponentItem::ComponentFunc(found)) => {
            let checked = Shape::of(function).check(&found, &whole.instance_type());
            checked.map_err(|error| {
                wrong(format!("has a different type: {}", one_line(&error.root_cause().to_string())))
            })
        }
        Some(_) => Err(wrong("is not a function".to_owned())),
        None => Err(wrong("is missing".to_owned())),
    }
}

fn same_version(full: &str, name: &Name<'_>) -> Result<(), Fault> {
    if name.version == VERSION {
        return Ok(());
    }
    let message = format!("`{full}` is of version {}; this program offers {VERSION}", or_none(name.version));
    Err(Fault::new(Code::ComponentVersion, message))
}

fn or_none(version: &str) -> &str {
    if version.is_empty() { "none" } else { version }
}

/// Checks one import against the rules and the grants. What a hook may call is not decided here: the host refuses a call while the hook
/// runs, as in every lane.
fn imported(import: &str, item: &ComponentItem, id: &ExtensionId, grants: &Grants) -> Result<(), Fault> {
    let refused = |message: String| Fault::new(Code::ComponentImport, message);
    let name = Name::parse(import);
    if !matches!(item, ComponentItem::ComponentInstance(_)) {
        return Err(refused(format!("it imports `{import}`, which is not an interface")));
    }
    if name.package.starts_with("wasi:") {
        return if name.version.starts_with("0.2.") {
            Ok(())
        } else {
            Err(refused(format!("it imports `{import}`; this program supports WASI 0.2")))
        };
    }
    if name.package != PACKAGE {
        return Err(refused(format!("it imports `{import}`, which this program does not have")));
    }
    same_version(import, &name)?;
    let interface = name.interface;
    let Some(known) = IMPORTS.iter().find(|known| known.name == interface) else {
        return Err(refused(if is_planned(interface) {
            format!("it imports `{interface}`, which is not offered yet")
        } else {
            format!("it imports `{interface}`, which this program does not have")
        }));
    };
    let is_named = || grants.interfaces.iter().any(|granted| granted == known.grant_name());
    let (is_granted, lacks, flag) = match known.grant() {
        // Its own secrets and its own folder need no grant, so that each call is checked.
        GrantRule::Everyone | GrantRule::EachFolder | GrantRule::EachSecret => return Ok(()),
        GrantRule::EachVariable => {
            (!grants.environment.is_empty(), "no variable is".to_owned(), "--environment NAME".to_owned())
        }
        GrantRule::EachHost => {
            let is_granted = is_named() || !grants.network.is_empty();
            (is_granted, "no host is".to_owned(), "--network HOST".to_owned())
        }
        GrantRule::Components
        | GrantRule::ComponentsAndPrograms
        | GrantRule::Explicit
        | GrantRule::Nobody => {
            let name = known.grant_name();
            (is_named(), format!("the interface `{name}` is not"), format!("--interface {name}"))
        }
    };
    if is_granted {
        return Ok(());
    }
    Err(refused(format!("it imports `{interface}`, and {lacks} granted: `holdfast ext grant {id} {flag}`")))
}
