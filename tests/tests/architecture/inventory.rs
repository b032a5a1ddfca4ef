//! That what is documented is read: every setting, policy key, grant, manifest field, frame kind and host call has a reader in the product
//! and is named by a test. What has none must be refused when it is written, and is not in the types that the docs are generated from.
//!
//! The types are found: every struct with a JSON Schema in the folders of a format is one, so that a new one cannot be forgotten. A reader
//! is found by its text: `.field`, or the field's name in a pattern, in a file other than the one that declares it and the one that reads
//! the YAML. A name that is common finds a reader too easily; a field that nothing names is found for certain. A test names a field as it
//! is written: `field:`, `"field"`, `` `field` `` or `.field`.

use crate::tree::File;

/// Something documented, who reads it, and a test that names it.
#[derive(Debug)]
pub struct InventoryRow {
    pub name: String,
    pub reader: Option<String>,
    pub test: Option<String>,
}

/// A folder in which formats are declared, and the files that only carry their values.
pub struct FormatSource {
    pub folder: &'static str,
    pub carriers: &'static [&'static str],
}

pub const FORMATS: &[FormatSource] = &[
    FormatSource {
        folder: "crates/home/src/",
        carriers: &["crates/home/src/settings/read.rs", "crates/home/src/settings/write.rs"],
    },
    FormatSource {
        folder: "crates/policy/src/",
        carriers: &["crates/policy/src/read.rs", "crates/policy/src/read/given.rs"],
    },
    FormatSource {
        folder: "crates/contract/src/manifest/",
        carriers: &[
            "crates/contract/src/manifest/read.rs",
            "crates/policy/src/read/given.rs",
            "crates/policy/src/grants.rs",
        ],
    },
];

/// Fields that the types have and nothing reads, each with what refuses it when it is written, or why nothing has to read it.
const REFUSED: &[(&str, &str)] = &[
    ("Manifest.package", "the loader: there is no Node lane"),
    ("Events.publishes", "it describes what an extension publishes, for people"),
];

fn is_test(path: &str) -> bool {
    path.ends_with("_tests.rs")
        || path.contains("/tests/")
        || path.starts_with("tests/")
        || path.contains("/testkit/")
}

fn is_product(path: &str) -> bool {
    (path.starts_with("crates/") || path.starts_with("extensions/"))
        && path.contains("/src/")
        && !is_test(path)
}

/// A field of a format: what it is called in the code, and as it is written.
struct Field {
    name: String,
    key: String,
}

/// The structs of a source text that have a JSON Schema, with their public fields.
fn formats(text: &str) -> Vec<(String, Vec<Field>)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let Some(name) = line.strip_prefix("pub struct ").and_then(|rest| rest.strip_suffix(" {")) else {
            continue;
        };
        // The attributes and comments before it, up to the end of the item before.
        let before = lines[..place].iter().rev().take_while(|line| !line.is_empty() && **line != "}");
        if before.into_iter().any(|line| line.contains("JsonSchema")) {
            found.push((name.to_owned(), fields(&lines[place + 1..])));
        }
    }
    found
}

/// The public fields up to the end of a struct.
fn fields(lines: &[&str]) -> Vec<Field> {
    let (mut found, mut renamed) = (Vec::new(), None);
    for line in lines.iter().take_while(|line| **line != "}") {
        let line = line.trim();
        if let Some((_, rest)) = line.split_once("rename = \"") {
            renamed = rest.split('"').next().map(str::to_owned);
        }
        if let Some((name, _)) = line.strip_prefix("pub ").and_then(|field| field.split_once(':')) {
            let key = renamed.take().unwrap_or_else(|| name.to_owned());
            found.push(Field { name: name.to_owned(), key });
        }
    }
    found
}

/// The places where a text has a word, with what is before and after it.
fn places<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let letter = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    let places = text.match_indices(word).map(|(at, _)| (&text[..at], &text[at + word.len()..]));
    places.filter(move |(before, after)| !letter(before.chars().next_back()) && !letter(after.chars().next()))
}

/// Whether a text has `.field` that is not a call.
fn accesses(text: &str, field: &str) -> bool {
    places(text, field).any(|(before, after)| before.ends_with('.') && !after.starts_with('('))
}

/// Whether a text accesses a field, or names it in a pattern.
fn reads(text: &str, field: &str) -> bool {
    let in_pattern = |before: &str, after: &str| {
        before.trim_end().ends_with(['{', ',']) && after.trim_start().starts_with([',', '}', ':'])
    };
    accesses(text, field) || places(text, field).any(|(before, after)| in_pattern(before, after))
}

/// Whether a test's text has a key as it is written in a file, in a value or in an access.
fn names(text: &str, key: &str) -> bool {
    places(text, key).any(|(before, after)| after.starts_with([':', '"', '`']) || before.ends_with('.'))
}

/// Every field of every format, with its reader and a test.
pub fn inventory(files: &[File]) -> Vec<InventoryRow> {
    let mut rows = Vec::new();
    for format in FORMATS {
        let declares = |file: &&File| file.path.starts_with(format.folder) && !is_test(&file.path);
        for declared in files.iter().filter(declares) {
            for (name, fields) in formats(&declared.text) {
                for Field { name: field, key } in fields {
                    let carries = |path: &str| format.carriers.contains(&path);
                    let reads = |it: &&File| {
                        if it.path == declared.path {
                            // An accessor or a conversion beside the type.
                            accesses(&it.text, &field)
                        } else {
                            is_product(&it.path) && !carries(&it.path) && reads(&it.text, &field)
                        }
                    };
                    let reader = files.iter().find(reads);
                    let test = files.iter().find(|it| is_test(&it.path) && names(&it.text, &key));
                    rows.push(InventoryRow {
                        name: format!("{name}.{field}"),
                        reader: reader.map(|it| it.path.clone()),
                        test: test.map(|it| it.path.clone()),
                    });
                }
            }
        }
    }
    rows
}

/// What has no reader or no test, and is not refused.
pub fn unread(files: &[File]) -> Vec<String> {
    let mut broken = Vec::new();
    for InventoryRow { name, reader, test } in inventory(files) {
        if REFUSED.iter().any(|(refused, _)| *refused == name) {
            continue;
        }
        if reader.is_none() {
            broken.push(format!(
                "`{name}` is documented and read by nothing: read it, or refuse it with HF-1009"
            ));
        }
        if test.is_none() {
            broken.push(format!("`{name}` is named by no test"));
        }
    }
    broken
}

/// Frame kinds that nothing writes: no file of the product makes their bodies.
pub fn unwritten_frames(files: &[File]) -> Vec<String> {
    let table = files.iter().find(|file| file.path == "crates/contract/src/frames/body.rs");
    let kinds = table.iter().flat_map(|file| file.text.lines()).filter_map(|line| {
        let words: Vec<&str> = line.trim().strip_suffix(';')?.split_whitespace().collect();
        match words.as_slice() {
            [kind, "Fact" | "Decision", body] if kind.starts_with('"') => {
                Some((kind.trim_matches('"'), *body))
            }
            _ => None,
        }
    });
    let writes = |body: &str| {
        let maker = format!("{body} {{");
        files.iter().any(|file| {
            is_product(&file.path) && !file.path.starts_with("crates/contract/") && file.text.contains(&maker)
        })
    };
    let unwritten = kinds.filter(|(_, body)| !writes(body));
    unwritten
        .map(|(kind, body)| format!("the frame `{kind}` ({body}) is documented and never written"))
        .collect()
}

/// Host calls that the runtime does not serve.
pub fn unserved_host_calls(files: &[File]) -> Vec<String> {
    let table = files.iter().find(|file| file.path == "crates/contract/src/extension/host_call.rs");
    let calls = table.iter().flat_map(|file| file.text.lines()).filter_map(|line| {
        let (variant, rest) = line.trim().split_once('(')?;
        let (_, rest) = rest.split_once(") = \"")?;
        Some((rest.split_once('"')?.0, variant))
            .filter(|(_, variant)| variant.starts_with(char::is_uppercase))
    });
    let serves = |variant: &str| {
        files.iter().any(|file| {
            file.path.starts_with("crates/runtime/src/")
                && !is_test(&file.path)
                && file.text.contains(variant)
        })
    };
    let unserved = calls.filter(|(_, variant)| !serves(variant));
    unserved
        .map(|(name, variant)| format!("the host call `{name}` ({variant}) is documented and not served"))
        .collect()
}
