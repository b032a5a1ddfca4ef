//! Every attack through every function that prints. The findings M3, M5 and M11.

use holdfast_contract::problem::{Code, Problem};
use serde_json::json;

use super::*;
use crate::chat::text::margin::{Margin, line_of, margined, wrapped};
use crate::chat::text::markdown::Markdown;
use crate::chat::text::style::TextStyle;
use crate::output::{problem_rows, table};

#[path = "../../../../holdfast/tests/security/attacks.rs"]
mod attacks;

use attacks::{ATTACKS, OWN_ROWS, is_forbidden};

const COLUMNS: usize = 80;

/// The rows of a terminal of this width.
fn rows(text: &str) -> Vec<String> {
    let rows = text.split('\n').flat_map(|line| {
        let letters: Vec<char> = line.chars().collect();
        letters.chunks(COLUMNS).map(String::from_iter).collect::<Vec<String>>()
    });
    rows.collect()
}

/// In prose an emoji may have one selector of its style.
fn is_prose(text: &str) -> bool {
    !text.replace("\u{2764}\u{fe0f}", "").contains(is_forbidden)
}

#[test]
fn no_attack_passes_a_function_that_prints() {
    assert!(ATTACKS.len() >= 80, "{}", ATTACKS.len());
    type Print = fn(&str) -> String;
    let prose: &[(&str, Print)] = &[
        ("sanitize_for_terminal", sanitize_for_terminal),
        ("margined", |text| margined(text, COLUMNS)),
        ("in pieces", |text| {
            let mut margin = Margin::new(COLUMNS);
            text.chars().map(|letter| margin.push(&letter.to_string())).collect()
        }),
        ("markdown", |text| {
            let mut markdown = Markdown::new(TextStyle::Plain, COLUMNS, 2);
            markdown.push(text) + &markdown.finish()
        }),
        ("markdown in pieces", |text| {
            let mut markdown = Markdown::new(TextStyle::Plain, COLUMNS, 2);
            let out: String = text.chars().map(|letter| markdown.push(&letter.to_string())).collect();
            out + &markdown.finish()
        }),
        ("a problem", |text| problem_rows(&Problem::new(Code::ToolFailed, text).help(text), COLUMNS)),
    ];
    let lines: &[(&str, Print)] = &[
        ("one_line", one_line),
        ("line_of", |text| line_of("tool: ", text, COLUMNS)),
        ("wrapped", |text| wrapped(&format!("x{text}"), COLUMNS)),
        ("a table", |text| table(["one", "two"], [["x".to_owned(), text.to_owned()]], "")),
        ("arguments", |text| safe_json(&json!({ "path": text, "x": [text] }).to_string())),
        ("arguments on several lines", |text| {
            safe_json(&serde_json::to_string_pretty(&json!({ "path": text })).unwrap())
        }),
    ];
    for (name, attack) in ATTACKS {
        for (function, print) in prose {
            let printed = print(attack);
            assert!(is_prose(&printed), "{name} through {function}: {printed:?}");
        }
        for (function, print) in lines {
            let printed = print(attack);
            assert!(!printed.contains(is_forbidden), "{name} through {function}: {printed:?}");
        }
        // What is laid out for a terminal never begins a row that looks like ours.
        let laid_out = prose.iter().skip(1).chain(&lines[1..3]);
        for (function, print) in laid_out {
            let printed = print(attack);
            for row in rows(&printed) {
                assert!(
                    !OWN_ROWS.iter().any(|own| row.starts_with(own)),
                    "{name} through {function}: {row:?} of {printed:?}"
                );
            }
        }
    }
}

#[test]
fn every_character_that_is_not_seen_is_replaced() {
    for code in 0..=0x10_ffff {
        let Some(character) = char::from_u32(code) else { continue };
        if is_forbidden(character) {
            let text = format!("a{character}b");
            for printed in [one_line(&text), sanitize_for_terminal(&text), safe_json(&text)] {
                assert!(!printed.contains(is_forbidden), "U+{code:04X}: {printed:?}");
            }
        }
    }
}
