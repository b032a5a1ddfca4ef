//! No privilege follows from an extension's id: the code of the crates compares nothing with the id of a built-in extension.

use std::collections::BTreeSet;

use super::rust_text::{Literals, code_only, without_inline_tests};
use super::tree::File;

/// Files that compare with names of WIT interfaces, one of which is also the id of an extension.
const COMPARES_INTERFACES: &[&str] = &["crates/lane-wasm/src/wit/interfaces.rs"];

/// The ids of the built-in extensions: the names of their folders.
pub fn built_in_ids(root: &std::path::Path) -> BTreeSet<String> {
    let folders = std::fs::read_dir(root.join("extensions")).unwrap().map(Result::unwrap);
    let folders = folders.filter(|entry| entry.path().is_dir());
    folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Comparisons with an id: with `==` or `!=`, by a pattern of `match` or `matches!`, by `contains`, `starts_with` or `strip_prefix`; with
/// the text itself or with a constant that has it. A constant counts in every file that is given.
pub fn compared_ids(files: &[File], ids: &BTreeSet<String>) -> Vec<String> {
    let in_crates = |file: &&File| {
        let excepted = COMPARES_INTERFACES.contains(&file.path.as_str());
        file.path.starts_with("crates/") && file.path.contains("/src/") && !file.is_test() && !excepted
    };
    let code: Vec<(&str, String)> = files
        .iter()
        .filter(in_crates)
        .map(|file| (file.path.as_str(), without_inline_tests(&code_only(&file.text, Literals::Keep))))
        .collect();
    let quoted: Vec<String> = ids.iter().map(|id| format!("\"{id}\"")).collect();
    let mut wanted = quoted.clone();
    wanted.extend(code.iter().flat_map(|(_, code)| constants(code, &quoted)));
    let mut found = Vec::new();
    for (path, code) in &code {
        for (number, pattern) in matched_patterns(code) {
            let named = wanted.iter().filter(|it| has_word(pattern, it));
            found.extend(
                named.map(|it| format!("{path}:{number}: compares with {it}: check a grant instead")),
            );
        }
        for (number, line) in code.lines().enumerate() {
            found.extend(
                wanted
                    .iter()
                    .filter(|it| is_compared(line, it))
                    .map(|it| format!("{path}:{}: compares with {it}: check a grant instead", number + 1)),
            );
        }
    }
    found
}

/// The constants whose value is an id, or a list with one.
fn constants(code: &str, quoted: &[String]) -> Vec<String> {
    let declared = code.split("const ").skip(1).filter_map(|rest| {
        let (name, value) = rest.split(';').next()?.split_once(": &")?;
        let is_name = name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
        (is_name && value.contains("str") && quoted.iter().any(|id| value.contains(id.as_str())))
            .then(|| name.to_owned())
    });
    declared.collect()
}

/// The patterns of the calls of `matches!`, each with the line on which the call begins: what follows the first comma that is not in
/// brackets.
fn matched_patterns(code: &str) -> impl Iterator<Item = (usize, &str)> {
    const CALL: &str = "matches!(";
    code.match_indices(CALL).filter_map(move |(at, _)| {
        let pattern = pattern_of(&code[at + CALL.len()..])?;
        Some((code[..at].lines().count().max(1), pattern))
    })
}

/// The pattern in the arguments of `matches!`, up to the bracket that closes them.
fn pattern_of(arguments: &str) -> Option<&str> {
    let (mut at, mut depth, mut comma) = (0, 0_u32, None);
    while let Some(letter) = arguments[at..].chars().next() {
        if let Some(length) = literal_length(&arguments[at..]) {
            at += length;
            continue;
        }
        match letter {
            ')' if depth == 0 => return Some(&arguments[comma?..at]),
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => comma = comma.or(Some(at)),
            _ => {}
        }
        at += letter.len_utf8();
    }
    None
}

/// The length of the string or character that begins here, if one does.
fn literal_length(code: &str) -> Option<usize> {
    let mut letters = code.char_indices();
    let (_, quote) = letters.next().filter(|(_, letter)| matches!(letter, '"' | '\''))?;
    let mut escaped = false;
    for (count, (place, letter)) in letters.enumerate() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return Some(place + 1),
            // A lifetime has no quote at its end.
            _ if quote == '\'' && count > 0 && !code.starts_with("'\\") => return None,
            _ => {}
        }
    }
    None
}

fn has_word(text: &str, wanted: &str) -> bool {
    places(text, wanted).next().is_some()
}

fn is_compared(line: &str, wanted: &str) -> bool {
    places(line, wanted).any(|(before, after)| is_operand(before, after))
}

/// The places where a text has these letters and no longer word, with what is before and after each.
fn places<'t>(text: &'t str, wanted: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let is_word = |letter: Option<char>| letter.is_some_and(|it| it.is_alphanumeric() || it == '_');
    let all = text.match_indices(wanted).map(|(at, _)| (&text[..at], &text[at + wanted.len()..]));
    all.filter(move |(before, after)| !is_word(before.chars().last()) && !is_word(after.chars().next()))
}

/// Whether what stands between these two parts of a line is an operand of a comparison.
fn is_operand(before: &str, after: &str) -> bool {
    let before = before.trim_end().trim_end_matches(['&', '*']).trim_end();
    let after = after.trim_start();
    let called = ["contains(", "starts_with(", "strip_prefix(", "eq("];
    before.ends_with("==")
        || before.ends_with("!=")
        || after.starts_with("==")
        || after.starts_with("!=")
        || after.starts_with("=>")
        || after.starts_with(".contains(")
        || (before.ends_with("Some(") && after.starts_with(") =>"))
        || called.iter().any(|call| before.ends_with(call))
}
