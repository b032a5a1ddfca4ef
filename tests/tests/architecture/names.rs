//! Rules about names: public type names are unique, and retired names stay retired.

use std::collections::BTreeMap;

use crate::rust_text::{Literals, Token, code_only, tokens, without_inline_tests};
use crate::tree::File;

/// Public type names that several crates share because they mean the same on both sides of a boundary.
const SHARED_TYPE_NAMES: &[&str] = &[];

/// Words that were once used for things that the field has a name for. `docs/glossary.md` has the names in use. No type, module or
/// constant has such a name.
const RETIRED: &[&str] = &[
    "again",
    "birth",
    "carried",
    "clerk",
    "clockwork",
    "conductor",
    "desk",
    "door",
    "errand",
    "feed",
    "figures",
    "founder",
    "ground",
    "guests",
    "handing",
    "haste",
    "heard",
    "house",
    "keeps",
    "lent",
    "living",
    "made",
    "patience",
    "portions",
    "premises",
    "presence",
    "refold",
    "refolded",
    "seat",
    "slip",
    "spares",
    "standing",
    "trouble",
    "way",
    "wiring",
    "workbench",
    "workshop",
];

/// The same for functions and variants.
const RETIRED_MEMBERS: &[&str] = &[
    "again",
    "birth",
    "carried",
    "clerk",
    "clockwork",
    "conductor",
    "desk",
    "door",
    "errand",
    "feed",
    "figures",
    "founder",
    "ground",
    "guests",
    "handing",
    "haste",
    "hear",
    "heard",
    "house",
    "ink",
    "keeps",
    "lent",
    "living",
    "made",
    "mourn",
    "patience",
    "portions",
    "premises",
    "presence",
    "refold",
    "refolded",
    "seat",
    "slip",
    "spares",
    "standing",
    "stir",
    "trouble",
    "troubles",
    "way",
    "wiring",
    "workbench",
    "workshop",
];

/// What opens the declaration of a type.
const TYPE_KEYWORDS: &[&str] = &["struct", "enum", "trait", "type", "union"];

/// What opens a declaration whose name must not be a retired word.
const NAMED_KEYWORDS: &[&str] = &["struct", "enum", "trait", "type", "union", "mod", "const", "static"];

/// Whether a file is source of the product: not a test, not generated, not an author's side of the interface.
fn is_product(file: &File) -> bool {
    let product = ["crates/", "extensions/"].iter().any(|folder| file.path.starts_with(folder));
    product && file.path.contains("/src/") && !file.is_test() && !file.path.ends_with("/testing.rs")
}

fn product_code(files: &[File]) -> impl Iterator<Item = (&File, Vec<Token>)> {
    files
        .iter()
        .filter(|file| is_product(file))
        .map(|file| (file, tokens(&without_inline_tests(&code_only(&file.text, Literals::Blank)))))
}

/// A public type's name is used once in the workspace.
pub fn unique_type_names(files: &[File]) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, tokens) in product_code(files) {
        for window in tokens.windows(3) {
            let [public, keyword, name] = window else { continue };
            // A name that a macro is given stands where the macro is called.
            let named = name.text != "$" && TYPE_KEYWORDS.contains(&keyword.text.as_str());
            if public.text == "pub" && named {
                let place = format!("{}:{}", file.path, name.line);
                places.entry(name.text.clone()).or_default().push(place);
            }
        }
    }
    places
        .into_iter()
        .filter(|(name, places)| places.len() > 1 && !SHARED_TYPE_NAMES.contains(&name.as_str()))
        .map(|(name, places)| format!("`{name}` is the name of several public types: {}", places.join(", ")))
        .collect()
}

/// No type, module, constant, variant or function has a name that was retired.
pub fn retired_names(files: &[File]) -> Vec<String> {
    let mut broken = Vec::new();
    for (file, tokens) in product_code(files) {
        let declared = tokens.windows(2).filter_map(|window| {
            let [keyword, name] = window else { return None };
            let retired = match keyword.text.as_str() {
                "fn" => RETIRED_MEMBERS,
                keyword if NAMED_KEYWORDS.contains(&keyword) => RETIRED,
                _ => return None,
            };
            Some((name, retired))
        });
        for (name, retired) in declared.chain(variants(&tokens).map(|name| (name, RETIRED_MEMBERS))) {
            if retired.contains(&name.text.to_lowercase().as_str()) {
                broken.push(format!(
                    "{}:{}: `{}` is a retired name; see docs/glossary.md",
                    file.path, name.line, name.text
                ));
            }
        }
    }
    broken
}

/// The names of the variants of all enums: what stands at the beginning of an enum's body, or behind a comma of it, attributes left out.
fn variants(tokens: &[Token]) -> impl Iterator<Item = &Token> {
    let enums = tokens.iter().enumerate().filter(|(_, token)| token.text == "enum");
    enums.flat_map(move |(at, _)| {
        let (mut depth, mut expected, mut names) = (0_u32, false, Vec::new());
        for token in &tokens[at..] {
            match token.text.as_str() {
                "{" | "(" | "[" => {
                    depth += 1;
                    expected |= depth == 1 && token.text == "{";
                }
                "}" | ")" | "]" => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 && token.text == "}" {
                        break;
                    }
                }
                ";" if depth == 0 => break,
                "," if depth == 1 => expected = true,
                name if expected && depth == 1 && name.starts_with(char::is_uppercase) => {
                    names.push(token);
                    expected = false;
                }
                _ => {}
            }
        }
        names
    })
}
