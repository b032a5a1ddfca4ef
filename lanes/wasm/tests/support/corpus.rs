//! The hostile corpus as a table: each guest in `tests/hostile/wasm/` says in its first lines what it attacks, how it is called and
//! what must come of it.
//!
//! ```text
//! ;; attacks: what it does
//! ;; expect: HF-4106, or ok
//! ;; at: load                          where the fault comes at loading and not in a call
//! ;; call: tool NAME ARGUMENTS         or: gate ARGUMENTS
//! ;; grants: interfaces=events,ui secrets=TOKEN
//! ;; manifest: one line of YAML
//! ;; budget: fuel=1000 host_calls=5    in place of the defaults
//! ;; without: fuel=9999 -> HF-4107     what comes of it with that limit out of the way
//! ```

use std::path::{Path, PathBuf};

use holdfast_contract::budgets::Budgets;
use holdfast_contract::manifest::Grants;
use holdfast_contract::wire::Call;
use serde_json::Value;

use super::{Extension, component, gate, here, tool};

/// One guest of the corpus.
pub struct Case {
    pub name: String,
    pub extension: Extension,
    /// The code of the fault, or `ok`.
    pub expect: String,
    /// The call; none where loading must fail already.
    pub call: Option<Call>,
    /// A budget with one limit out of the way, and what comes of it then.
    pub without: Option<(String, Budgets, String)>,
}

/// Where the corpus lies.
pub fn folder() -> PathBuf {
    here().join("../../tests/hostile/wasm")
}

/// Every guest, by name.
pub fn all() -> Vec<Case> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "wat")).collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Case {
    let text = std::fs::read_to_string(path).unwrap();
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let mut extension = Extension::of(component(path));
    extension.id = name.clone();
    let header: Vec<_> = text.lines().map_while(|line| line.strip_prefix(";; ")?.split_once(": ")).collect();
    let field = |wanted: &str| header.iter().find(|(field, _)| *field == wanted).map(|(_, value)| *value);
    assert!(field("attacks").is_some(), "{name} does not say what it attacks");
    extension.manifest = field("manifest").unwrap_or_default().to_owned();
    extension.grants = grants(field("grants").unwrap_or_default());
    extension.budgets = field("budget").unwrap_or_default().split(' ').fold(Budgets::default(), budget);
    let without = field("without").map(|without| {
        let (limit, then) = without.split_once(" -> ").unwrap();
        (limit.to_owned(), budget(extension.budgets, limit), then.to_owned())
    });
    Case {
        expect: field("expect").unwrap_or_else(|| panic!("{name} expects nothing")).to_owned(),
        call: (field("at") != Some("load")).then(|| call(field("call").unwrap())),
        name,
        extension,
        without,
    }
}

fn grants(text: &str) -> Grants {
    let list = |wanted: &str| {
        let found = text.split(' ').find_map(|part| part.strip_prefix(wanted)?.strip_prefix('='));
        found.map(|names| names.split(',').map(str::to_owned).collect()).unwrap_or_default()
    };
    Grants { interfaces: list("interfaces"), secrets: list("secrets"), ..Grants::default() }
}

fn budget(budgets: Budgets, change: &str) -> Budgets {
    let Some((name, number)) = change.split_once('=') else { return budgets };
    let mut fields = serde_json::to_value(budgets).unwrap();
    fields[name] = number.parse::<u64>().unwrap().into();
    serde_json::from_value(fields).unwrap()
}

fn call(text: &str) -> Call {
    let (kind, rest) = text.split_once(' ').unwrap();
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    match (kind, rest.split_once(' ')) {
        ("tool", Some((name, arguments))) => tool(name, json(arguments)),
        ("gate", _) => gate(json(rest)),
        _ => panic!("no such call: {text}"),
    }
}
