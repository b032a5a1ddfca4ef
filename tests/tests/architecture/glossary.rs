//! The glossary: few terms, each once, and every Rust name in its last column exists in the crate that it names.

use std::collections::BTreeSet;

use crate::rust_text::{Literals, Token, code_only, tokens};
use crate::tree::File;

/// Rows that the glossary may have.
pub const ROW_LIMIT: usize = 60;

/// What opens the declaration of a type. The types of `text_ids!` have an `impl` with their name.
const DECLARES: &[&str] = &["struct", "enum", "trait", "type", "impl"];

/// What is wrong with the table of terms, as seen from the sources.
pub fn broken_rows(page: &str, sources: &[File]) -> Vec<String> {
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).skip(2).collect();
    let mut broken = Vec::new();
    if rows.is_empty() || rows.len() > ROW_LIMIT {
        broken.push(format!("docs/glossary.md has {} rows, at most {ROW_LIMIT} are allowed", rows.len()));
    }
    let mut known = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [term, _, types] = cells.as_slice() else {
            broken.push(format!("docs/glossary.md: a row has three cells: {row}"));
            continue;
        };
        let term = term.trim_end_matches('*').to_lowercase();
        if !known.insert(term.clone()) {
            broken.push(format!("docs/glossary.md: \"{term}\" has two rows"));
        }
        let paths: Vec<&str> = types.split('`').skip(1).step_by(2).collect();
        if paths.is_empty() {
            broken.push(format!("docs/glossary.md: \"{term}\" names no Rust type"));
        }
        let missing = paths.into_iter().filter(|path| !exists(path, sources));
        broken.extend(missing.map(|path| format!("docs/glossary.md: there is no `{path}`")));
    }
    broken
}

/// Whether `crate::module::Type`, `crate::module::Type::Variant`, `crate::module` or `crate::function` exists.
fn exists(path: &str, sources: &[File]) -> bool {
    let parts: Vec<&str> = path.split("::").collect();
    let [name, inner @ ..] = parts.as_slice() else { return false };
    let folder = format!("crates/{}/src/", name.replace('_', "-"));
    let of_crate = sources.iter().filter(|file| file.path.starts_with(&folder) && !file.is_test());
    let types = inner.iter().position(|part| part.starts_with(char::is_uppercase)).unwrap_or(inner.len());
    let (modules, types) = inner.split_at(types);
    let mut candidates = of_crate.filter(|file| modules.iter().rev().skip(1).all(|it| is_in(&file.path, it)));
    match (modules, types) {
        ([], []) => false,
        ([.., last], []) => {
            candidates.any(|file| is_in(&file.path, last) || declares(&code(file), &["fn"], last))
        }
        (_, [name, variants @ ..]) => candidates.any(|file| {
            let code = code(file);
            modules.last().is_none_or(|it| is_in(&file.path, it))
                && declares(&code, DECLARES, name)
                && variants.iter().all(|variant| code.iter().any(|token| token.text == *variant))
        }),
    }
}

/// Whether a file is a module of this name, or lies below one.
fn is_in(path: &str, module: &str) -> bool {
    path.ends_with(&format!("/{module}.rs")) || path.contains(&format!("/{module}/"))
}

fn code(file: &File) -> Vec<Token> {
    tokens(&code_only(&file.text, Literals::Blank))
}

fn declares(code: &[Token], keywords: &[&str], name: &str) -> bool {
    code.windows(2).any(|pair| keywords.contains(&pair[0].text.as_str()) && pair[1].text == name)
}
