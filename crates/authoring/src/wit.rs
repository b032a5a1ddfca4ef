//! The embedded extension interface: the text of `wit/`, the purpose of each interface, and worlds built from some of them. Toolchains
//! import every interface of their world, so a world lists only what an extension exports and uses.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use holdfast_contract::problem::{Code, Problem};
use wit_parser::{PackageId, Resolve, SourceMap, WorldId};

/// The package's name.
pub const PACKAGE: &str = "holdfast:extension";
/// The package's version.
pub const VERSION: &str = "0.1.0-draft";
/// The world that a component is built for.
pub(crate) const WORLD: &str = "guest";

/// Names and texts of the package's files.
pub const FILES: &[(&str, &str)] = &[
    ("types.wit", include_str!("../../../wit/types.wit")),
    ("roles.wit", include_str!("../../../wit/roles.wit")),
    ("hooks.wit", include_str!("../../../wit/hooks.wit")),
    ("host.wit", include_str!("../../../wit/host.wit")),
    ("planned.wit", include_str!("../../../wit/planned.wit")),
];

/// What an interface is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComponentKind {
    /// Types that others use; it has no functions.
    Types,
    /// A role, which an extension exports.
    Role,
    /// A hook, which an extension exports.
    Hook,
    /// What an extension may import.
    Host,
    /// Defined, but not offered yet.
    Planned,
}

/// An interface of the package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name, without the package.
    pub name: String,
    /// What it is for.
    pub kind: ComponentKind,
}

/// Every interface, in the order of the files.
pub fn interfaces() -> Result<Vec<Interface>, Problem> {
    let (resolve, package) = package()?;
    let all = &resolve.packages[package].interfaces;
    let of_file = |(file, text): &(&str, &str)| {
        let here = text.lines().filter_map(|line| line.strip_prefix("interface ")?.strip_suffix(" {"));
        let known = here.filter_map(|name| all.get(name).map(|id| (name, &resolve.interfaces[*id])));
        let found = known.map(|(name, interface)| {
            let kind = match *file {
                _ if interface.functions.is_empty() => ComponentKind::Types,
                "roles.wit" => ComponentKind::Role,
                "hooks.wit" => ComponentKind::Hook,
                "host.wit" => ComponentKind::Host,
                _ => ComponentKind::Planned,
            };
            Interface { name: name.to_owned(), kind }
        });
        found.collect::<Vec<_>>()
    };
    Ok(FILES.iter().flat_map(of_file).collect())
}

/// What an interface of this name is for, if there is one.
pub fn kind(name: &str) -> Result<Option<ComponentKind>, Problem> {
    Ok(interfaces()?.into_iter().find(|interface| interface.name == name).map(|interface| interface.kind))
}

/// The package alone.
pub fn package() -> Result<(Resolve, PackageId), Problem> {
    resolve(None)
}

/// The package with an additional world, whose text is one more file of the package.
pub fn resolve_with(world: &str) -> Result<(Resolve, WorldId), Problem> {
    let (resolve, package) = resolve(Some(world))?;
    let world = resolve.packages[package].worlds.values().next().copied();
    let world = world.ok_or_else(|| Problem::new(Code::Internal, "the text has no world"))?;
    Ok((resolve, world))
}

fn resolve(world: Option<&str>) -> Result<(Resolve, PackageId), Problem> {
    let wrong = |error: &dyn fmt::Display| {
        Problem::new(Code::Internal, format!("the interface package cannot be read: {error}"))
    };
    let mut sources = SourceMap::default();
    for (name, text) in FILES {
        sources.push(Path::new(name), *text);
    }
    if let Some(world) = world {
        sources.push(Path::new("world.wit"), world);
    }
    let group = sources.parse().map_err(|(_, error)| wrong(&error))?;
    let mut resolve = Resolve::default();
    let package = resolve.push_group(group).map_err(|error| wrong(&error))?;
    Ok((resolve, package))
}

/// What a component exports and imports of the package, by the interfaces' names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// Roles and hooks.
    pub exports: BTreeSet<String>,
    /// Interfaces of the host.
    pub imports: BTreeSet<String>,
}

impl World {
    /// The world as WIT, one file of the package.
    pub fn text(&self) -> String {
        let mut text = format!("package {PACKAGE}@{VERSION};\n\nworld {WORLD} {{\n");
        for name in &self.imports {
            text.push_str(&format!("    import {name};\n"));
        }
        for name in &self.exports {
            text.push_str(&format!("    export {name};\n"));
        }
        text.push_str("}\n");
        text
    }

    /// The package and this world in it.
    pub(crate) fn resolve(&self) -> Result<(Resolve, WorldId), Problem> {
        resolve_with(&self.text())
    }

    /// Writes the package with this world into a folder, for a toolchain.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Problem> {
        let world = self.text();
        let files = FILES.iter().copied().chain([("world.wit", world.as_str())]);
        crate::files::write_all(folder, files)
    }

    /// Fails if the world is empty or contains an interface that this program does not offer.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        if self.exports.is_empty() {
            let help = "Give a function the SDK's `tool` attribute, or that of a hook such as `tool_gate`.";
            return Err(Problem::new(
                Code::BuildFailed,
                "the extension has no tool, no hook and no other role",
            )
            .help(help));
        }
        for name in self.exports.iter().chain(&self.imports) {
            if let None | Some(ComponentKind::Planned) = kind(name)? {
                let help = "`holdfast docs abi` lists the interfaces; planned ones cannot be used yet.";
                let what = format!("this program does not offer the interface `{name}`");
                return Err(Problem::new(Code::BuildFailed, what).help(help));
            }
        }
        Ok(())
    }
}

/// The interface's name in `holdfast:extension/NAME@VERSION`; `None` for other packages. Another version is an error.
pub(crate) fn own_interface(full: &str) -> Result<Option<&str>, Problem> {
    let Some(rest) = full.strip_prefix(PACKAGE).and_then(|rest| rest.strip_prefix('/')) else {
        return Ok(None);
    };
    match rest.split_once('@') {
        Some((name, VERSION)) => Ok(Some(name)),
        _ => {
            let what =
                format!("`{full}` has another version of the interface; this program supports {VERSION}");
            Err(Problem::new(Code::BuildFailed, what).help("Use the SDK of this program."))
        }
    }
}
