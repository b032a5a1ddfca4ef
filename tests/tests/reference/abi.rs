//! `docs/reference/abi.md`: the extension interface, read from `wit/` as a compiler would.

use std::fmt::Write;

use holdfast_authoring::wit::{self, ComponentKind, FILES, PACKAGE, VERSION};
use wit_parser::{Docs, Function, FunctionKind, Handle, Interface, Resolve, Type, TypeDefKind, TypeId};

/// The page.
pub fn page() -> String {
    let mut text = format!(
        "# The component interface\n\nThe WIT package `{PACKAGE}@{VERSION}`, from `wit/`. A component has the roles that\n\
         it exports and may call what it imports; there is nothing to declare. Every optional function is an\n\
         interface of its own. The version is a draft: until it is frozen, a component is built for one\n\
         version of the program.\n\n`holdfast ext build` writes a component's world from what its source uses. [The guides](../extensions/README.md)\n\
         cover each language.\n"
    );
    let sections = [
        (ComponentKind::Types, "Types", "Shared by several interfaces."),
        (ComponentKind::Role, "Roles", "A component has a role by exporting its interface."),
        (
            ComponentKind::Hook,
            "Hooks",
            "A component serves a hook point by exporting its interface. Priority, matcher and timeout are in the\n\
             manifest under `hooks`. A gate, guardrail or sanitizer that fails, traps or times out denies or\nblocks.",
        ),
        (
            ComponentKind::Host,
            "The host",
            "What a component may import. `log`, `config`, `session`, `state`, `messages`, `clock` and `random`\n\
             are available to all, and so is `timers`; the others must be granted. While a hook runs, a function\n\
             with side effects or I/O is denied: [host calls](host-calls.md) has the list.",
        ),
        (
            ComponentKind::Planned,
            "Planned",
            "Names and signatures that are reserved. This version does not offer them: `ext build` and the loader\n\
             refuse a component that imports or exports one.",
        ),
    ];
    let (resolve, package) = wit::package().unwrap();
    let all = wit::interfaces().unwrap();
    for (kind, title, says) in sections {
        writeln!(text, "\n## {title}\n\n{says}").unwrap();
        for found in all.iter().filter(|found| found.kind == kind) {
            let id = resolve.packages[package].interfaces[&found.name];
            interface(&mut text, &resolve, &found.name, &resolve.interfaces[id]);
        }
    }
    assert_eq!(
        FILES.len(),
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../wit")).unwrap().count()
    );
    text
}

fn interface(text: &mut String, resolve: &Resolve, name: &str, interface: &Interface) {
    writeln!(text, "\n### `{name}`\n\n{}\n", line(&interface.docs)).unwrap();
    text.push_str("```wit\n");
    for (name, id) in &interface.types {
        let defined = &resolve.types[*id];
        // A type that another interface defines is described there.
        if let TypeDefKind::Type(Type::Id(_)) = defined.kind {
            continue;
        }
        comment(text, "", &defined.docs);
        if let TypeDefKind::Resource = defined.kind {
            writeln!(text, "resource {name} {{").unwrap();
            for method in interface.functions.values().filter(|function| of_resource(function) == Some(*id)) {
                comment(text, "    ", &method.docs);
                writeln!(text, "    {}", signature(resolve, method)).unwrap();
            }
            text.push_str("}\n");
            continue;
        }
        define(text, resolve, name, &defined.kind);
    }
    for function in interface.functions.values().filter(|function| of_resource(function).is_none()) {
        comment(text, "", &function.docs);
        writeln!(text, "{}", signature(resolve, function)).unwrap();
    }
    text.push_str("```\n");
}

fn define(text: &mut String, resolve: &Resolve, name: &str, kind: &TypeDefKind) {
    let of =
        |given: &Option<Type>| given.map(|given| format!("({})", shown(resolve, &given))).unwrap_or_default();
    match kind {
        TypeDefKind::Record(record) => {
            writeln!(text, "record {name} {{").unwrap();
            for field in &record.fields {
                comment(text, "    ", &field.docs);
                writeln!(text, "    {}: {},", field.name, shown(resolve, &field.ty)).unwrap();
            }
            text.push_str("}\n");
        }
        TypeDefKind::Variant(variant) => {
            writeln!(text, "variant {name} {{").unwrap();
            for case in &variant.cases {
                comment(text, "    ", &case.docs);
                writeln!(text, "    {}{},", case.name, of(&case.ty)).unwrap();
            }
            text.push_str("}\n");
        }
        TypeDefKind::Enum(cases) => {
            writeln!(text, "enum {name} {{").unwrap();
            for case in &cases.cases {
                comment(text, "    ", &case.docs);
                writeln!(text, "    {},", case.name).unwrap();
            }
            text.push_str("}\n");
        }
        TypeDefKind::Type(same) => writeln!(text, "type {name} = {};", shown(resolve, same)).unwrap(),
        other => panic!("{name} is a {}, which this page cannot show", other.as_str()),
    }
}

/// The resource whose method a function is.
fn of_resource(function: &Function) -> Option<TypeId> {
    match function.kind {
        FunctionKind::Method(id) => Some(id),
        _ => None,
    }
}

fn signature(resolve: &Resolve, function: &Function) -> String {
    // A method's first parameter is the resource.
    let given = function.params.iter().skip(usize::from(of_resource(function).is_some()));
    let parameters: Vec<_> =
        given.map(|parameter| format!("{}: {}", parameter.name, shown(resolve, &parameter.ty))).collect();
    let result = function.result.map(|result| format!(" -> {}", shown(resolve, &result))).unwrap_or_default();
    format!("{}: func({}){result};", function.item_name(), parameters.join(", "))
}

fn shown(resolve: &Resolve, given: &Type) -> String {
    let Type::Id(id) = given else {
        return format!("{given:?}").to_lowercase();
    };
    let defined = &resolve.types[*id];
    if let Some(name) = &defined.name {
        return name.clone();
    }
    let inner = |given: &Option<Type>| given.map_or("_".to_owned(), |given| shown(resolve, &given));
    match &defined.kind {
        TypeDefKind::Option(inside) => format!("option<{}>", shown(resolve, inside)),
        TypeDefKind::List(inside) => format!("list<{}>", shown(resolve, inside)),
        TypeDefKind::Tuple(tuple) => {
            let inside: Vec<_> = tuple.types.iter().map(|inside| shown(resolve, inside)).collect();
            format!("tuple<{}>", inside.join(", "))
        }
        TypeDefKind::Result(result) => match (result.ok, result.err) {
            (None, None) => "result".to_owned(),
            (ok, err) => format!("result<{}, {}>", inner(&ok), inner(&err)),
        },
        TypeDefKind::Handle(Handle::Own(id)) => shown(resolve, &Type::Id(*id)),
        TypeDefKind::Handle(Handle::Borrow(id)) => format!("borrow<{}>", shown(resolve, &Type::Id(*id))),
        other => panic!("this page cannot show a {}", other.as_str()),
    }
}

/// An interface's own words. The parser takes a file's opening for the first interface's.
fn line(docs: &Docs) -> String {
    let said = |line: &&str| FILES.iter().any(|(_, text)| text.contains(&format!("/// {line}\n")));
    let lines = docs.contents.as_deref().unwrap_or_default().lines().filter(said);
    lines.collect::<Vec<_>>().join(" ")
}

fn comment(text: &mut String, indent: &str, docs: &Docs) {
    for line in docs.contents.as_deref().unwrap_or_default().trim().lines() {
        writeln!(text, "{indent}/// {}", line.trim()).unwrap();
    }
}
