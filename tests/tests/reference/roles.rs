//! `docs/reference/roles.md`: the roles and their functions, from the table that the lanes use, which is compared with `wit/`.

use std::collections::BTreeSet;
use std::fmt::Write;

use holdfast_authoring::wit::{self, ComponentKind};
use holdfast_contract::role::{Requirement, Role, RoleFunction};

/// The page.
pub fn page() -> String {
    let mut text = String::from(
        "# Roles\n\nThe functions that an extension exports determine its roles; nothing is declared, and one extension\n\
         may have several roles. A component exports the interface. A program names the function in its\n\
         answer to `hello` (hooks by their hook points), and a Python class has a method for it.\n\n\
         | role | what it is | interface | function | required | hook point |\n|---|---|---|---|---|---|\n",
    );
    for role in Role::ALL {
        for (index, function) in role.functions().enumerate() {
            let (name, what) =
                if index == 0 { (format!("`{}`", word(role)), role.describe()) } else { Default::default() };
            let required = if function.requirement() == Requirement::Required { "yes" } else { "" };
            let point = function.point().map(|point| format!("`{}`", word(&point))).unwrap_or_default();
            let (interface, function) = (function.interface(), function.name());
            writeln!(text, "| {name} | {what} | `{interface}` | `{function}` | {required} | {point} |")
                .unwrap();
        }
    }
    text.push_str("\nReserved roles, which no lane offers yet:\n\n");
    for role in Role::ALL.iter().filter(|role| role.functions().next().is_none()) {
        writeln!(text, "- `{}`: {}", word(role), role.describe()).unwrap();
    }
    text
}

fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).unwrap().as_str().unwrap().to_owned()
}

/// The functions of the table, as `interface.function`.
pub fn in_the_table() -> BTreeSet<String> {
    RoleFunction::ALL.iter().map(|it| format!("{}.{}", it.interface(), it.name())).collect()
}

/// The functions of the roles and hooks in `wit/`.
pub fn in_the_interface() -> BTreeSet<String> {
    let (resolve, package) = wit::package().unwrap();
    let exported = wit::interfaces()
        .unwrap()
        .into_iter()
        .filter(|it| matches!(it.kind, ComponentKind::Role | ComponentKind::Hook));
    let names = exported.flat_map(|it| {
        let id = resolve.packages[package].interfaces[&it.name];
        let functions = resolve.interfaces[id].functions.keys();
        functions.map(|function| format!("{}.{function}", it.name)).collect::<Vec<_>>()
    });
    names.collect()
}
