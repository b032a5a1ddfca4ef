//! The hostile corpus as a table: each guest in `wasm/` says in its first lines what it attacks, how it is called and what must
//! result. Tests of the lane and of the whole runtime both include this file.
//!
//! ```text
//! ;; attacks: what it does
//! ;; expect: HF-4106, or ok
//! ;; at: load                          where the fault comes at loading and not in a call
//! ;; call: tool NAME ARGUMENTS         or: gate ARGUMENTS
//! ;; grants: interfaces=events,ui secrets=TOKEN
//! ;; manifest: one line of YAML
//! ;; budget: fuel=1000 host_calls=5    in place of the defaults
//! ;; without: fuel=9999 -> HF-4107     the result with that limit lifted
//! ```

use std::path::{Path, PathBuf};

use holdfast_contract::budgets::Budgets;
use holdfast_contract::manifest::Grants;
use serde_json::Value;

/// One guest of the corpus.
pub struct Case {
    pub name: String,
    pub component: Vec<u8>,
    /// Lines of its manifest besides its id and name.
    pub manifest: String,
    pub grants: Grants,
    pub budgets: Budgets,
    /// The code of the fault, or `ok`.
    pub expect: String,
    /// How it is called; none where loading must fail already.
    pub attack: Option<Attack>,
    /// A limit that is lifted, the budget without it, and the result then.
    pub without: Option<(String, Budgets, String)>,
}

/// How a guest is called.
#[derive(Clone)]
pub enum Attack {
    Tool { name: String, arguments: Value },
    Gate { arguments: Value },
}

/// Where the corpus lies, whichever crate asks.
fn folder() -> PathBuf {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|it| it.join("tests/hostile/wasm"));
    folders.into_iter().find(|folder| folder.is_dir()).unwrap()
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
    let header: Vec<_> = text.lines().map_while(|line| line.strip_prefix(";; ")?.split_once(": ")).collect();
    let field = |wanted: &str| header.iter().find(|(field, _)| *field == wanted).map(|(_, value)| *value);
    assert!(field("attacks").is_some(), "{name} does not say what it attacks");
    let budgets = field("budget").unwrap_or_default().split(' ').fold(Budgets::default(), budget);
    let without = field("without").map(|without| {
        let (limit, then) = without.split_once(" -> ").unwrap();
        (limit.to_owned(), budget(budgets, limit), then.to_owned())
    });
    Case {
        component: wat::parse_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
        manifest: field("manifest").unwrap_or_default().to_owned(),
        grants: grants(field("grants").unwrap_or_default()),
        budgets,
        expect: field("expect").unwrap_or_else(|| panic!("{name} expects nothing")).to_owned(),
        attack: (field("at") != Some("load")).then(|| attack(field("call").unwrap())),
        without,
        name,
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

fn attack(text: &str) -> Attack {
    let (kind, rest) = text.split_once(' ').unwrap();
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    match (kind, rest.split_once(' ')) {
        ("tool", Some((name, arguments))) => {
            Attack::Tool { name: name.to_owned(), arguments: json(arguments) }
        }
        ("gate", _) => Attack::Gate { arguments: json(rest) },
        _ => panic!("no such call: {text}"),
    }
}
