//! Values taken out of text.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use crate::testing::{name, secret};
use crate::{Redactor, SHORTEST};

fn redactor(secrets: &[(&str, &str)]) -> Arc<Redactor> {
    Arc::new(Redactor::new(secrets.iter().map(|(key, value)| (name(key), secret(value)))))
}

const TRICKY: &str = "p@ss/w\"rd\\ ü\n";

#[test]
fn a_value_is_found_in_every_form_in_which_it_travels() {
    let redactor = redactor(&[("TOKEN", TRICKY)]);
    let json = serde_json::to_string(TRICKY).unwrap();
    for (form, what) in [
        (TRICKY.to_owned(), "as it is"),
        (TRICKY.trim().to_owned(), "without the end of its line"),
        (json.clone(), "JSON"),
        (serde_json::to_string(&json).unwrap(), "JSON in JSON"),
        ("p@ss\\/w\\\"rd\\\\ ü\\n".to_owned(), "JSON with slashes escaped"),
        ("p@ss/w\\\"rd\\\\ \\u00fc\\n".to_owned(), "JSON in ASCII"),
        ("p%40ss%2Fw%22rd%5C%20%C3%BC%0A".to_owned(), "an address"),
        ("p%40ss%2fw%22rd%5c%20%c3%bc%0a".to_owned(), "an address with small digits"),
        ("p%40ss%2Fw%22rd%5C+%C3%BC%0A".to_owned(), "a form"),
        (STANDARD.encode(TRICKY), "base64"),
        (STANDARD_NO_PAD.encode(TRICKY), "base64 without padding"),
        (URL_SAFE_NO_PAD.encode(TRICKY), "base64 for addresses"),
        (TRICKY.bytes().map(|byte| format!("{byte:02x}")).collect(), "hexadecimal digits"),
        (TRICKY.bytes().map(|byte| format!("{byte:02X}")).collect(), "large hexadecimal digits"),
    ] {
        let shown = redactor.redact(&format!("<{form}>")).into_owned();
        assert!(shown.contains("[secret TOKEN]"), "{what}: {form} became {shown}");
        assert!(!shown.contains("w") && !shown.contains("cEBzcy"), "{what}: {shown}");
    }
}

#[test]
fn a_value_is_found_inside_of_base64_wherever_it_begins() {
    let value = "correct-horse-battery";
    let redactor = redactor(&[("PASSWORD", value)]);
    for before in ["", "u", "us", "user:"] {
        for after in ["", "@", "@h", "@host"] {
            let header = format!("Basic {}", STANDARD.encode(format!("{before}{value}{after}")));
            let shown = redactor.redact(&header).into_owned();
            let around = 2 * (before.len() + after.len()) + 6;
            let rest = shown.replace("[secret PASSWORD]", "");
            assert!(
                rest.len() < shown.len() && rest.len() <= "Basic ".len() + around,
                "{before}{after}: {shown}"
            );
        }
    }
}

/// The forms of finding L6: broken lines, escapes throughout, separated digits.
fn disguises(value: &str) -> Vec<(String, &'static str)> {
    let bytes =
        |form: fn(u8) -> String, between: &str| value.bytes().map(form).collect::<Vec<_>>().join(between);
    let lines = |text: String, width: usize, end: &str| {
        let letters: Vec<char> = text.chars().collect();
        letters.chunks(width).map(String::from_iter).collect::<Vec<_>>().join(end)
    };
    let header = STANDARD.encode(format!("a user of some kind:{value}@a host somewhere"));
    vec![
        (lines(STANDARD.encode(value), 8, "\n"), "base64 in lines"),
        (lines(STANDARD.encode(value), 8, "\r\n"), "base64 in lines of another system"),
        (lines(STANDARD.encode(value), 8, "\\n"), "base64 in lines in JSON"),
        (lines(header.clone(), 76, "\n"), "base64 as the tool of that name prints it"),
        (lines(header.clone(), 64, "\r\n"), "base64 as in mail"),
        (lines(header.clone(), 10, "\n"), "base64 in short lines"),
        (lines(STANDARD.encode(value), 8, "\n    "), "base64 in indented lines"),
        (lines(STANDARD.encode(value), 8, "\r\n\t"), "base64 in lines that begin with a tab"),
        (lines(STANDARD.encode(value), 8, "\\n  "), "base64 in indented lines in JSON"),
        (lines(header.clone(), 76, "\n          "), "base64 as a block in YAML"),
        (lines(header, 16, "\n \t "), "base64 in lines that are indented in two ways"),
        (bytes(|byte| format!("\\u{byte:04x}"), ""), "escapes throughout"),
        (bytes(|byte| format!("\\u{byte:04X}"), ""), "large escapes throughout"),
        (bytes(|byte| format!("%{byte:02x}"), ""), "percent signs throughout"),
        (bytes(|byte| format!("%{byte:02X}"), ""), "large percent signs throughout"),
        (value.replacen(&value[..1], &format!("\\u{:04x}", value.as_bytes()[0]), 1), "one escape"),
        (value.replacen(&value[1..2], &format!("%{:02x}", value.as_bytes()[1]), 1), "one percent sign"),
        (bytes(|byte| format!("{byte:02x}"), ":"), "digits with colons"),
        (bytes(|byte| format!("{byte:02X}"), "-"), "large digits with dashes"),
        (bytes(|byte| format!("{byte:02x}"), " "), "digits with spaces"),
        (bytes(|byte| format!("{byte:02x}"), "\n"), "digits in lines"),
        (bytes(|byte| format!("0x{byte:02x}"), ", "), "digits as a program has them"),
        (bytes(|byte| format!("\\x{byte:02x}"), ""), "digits as a string has them"),
    ]
}

// Finding L6.
#[test]
fn a_value_is_found_in_disguise_and_in_pieces() {
    let value = "correct-horse-battery";
    let redactor = redactor(&[("PASSWORD", value)]);
    for (form, what) in disguises(value) {
        let text = format!("see: <{form}>.");
        let shown = redactor.redact(&text).into_owned();
        assert!(shown.contains("[secret PASSWORD]"), "{what}: {text} became {shown}");
        let rest = shown.replace("[secret PASSWORD]", "");
        assert!(
            !rest.contains("orse") && !rest.contains("b3JzZ") && !rest.contains("6f:72"),
            "{what}: {shown}"
        );
        for size in [1, 2, 3, 7] {
            let letters: Vec<char> = text.chars().collect();
            let mut stream = redactor.stream();
            let mut out: String =
                letters.chunks(size).map(|piece| stream.push(&String::from_iter(piece))).collect();
            out.push_str(&stream.finish());
            assert_eq!(out, shown, "{what} in pieces of {size}");
        }
    }
}

#[test]
fn ordinary_text_is_no_disguise() {
    let redactor = redactor(&[("PASSWORD", "correct-horse-battery"), ("PIN", "beef")]);
    for text in [
        "dead be ef",
        "be\nef",
        "correct\n    horse\n    battery",
        "100%",
        "a \\ b",
        "C:\\users\\x",
        "50% off\nand more",
        "12:34:56 on 2027-01-31",
        "0x",
        "\\u00",
    ] {
        assert_eq!(redactor.redact(text), text);
        let mut stream = redactor.stream();
        let out = stream.push(text) + &stream.finish();
        assert_eq!(out, text);
    }
}

#[test]
fn names_say_which_and_own_secrets_say_whose() {
    let redactor = redactor(&[("A", "first-value"), ("telegram.TOKEN", "second-value")]);
    assert_eq!(
        redactor.redact("first-value, second-value, first-value."),
        "[secret A], [secret telegram.TOKEN], [secret A]."
    );
    assert!(matches!(redactor.redact("nothing here"), std::borrow::Cow::Borrowed(_)));
}

#[test]
fn of_values_that_overlap_nothing_is_left() {
    let redactor = redactor(&[("A", "abcdefgh"), ("B", "efghijkl"), ("C", "abcd")]);
    assert_eq!(redactor.redact("-abcdefghijkl-"), "-[secret A][secret B][secret C]-");
    assert_eq!(redactor.redact("-abcdefg-"), "-[secret C]efg-");
}

#[test]
fn values_that_stand_in_every_text_are_not_looked_for_and_are_named() {
    let redactor = redactor(&[("SHORT", "on"), ("EMPTY", ""), ("LONG", "long enough")]);
    assert_eq!(redactor.redact("on and on"), "on and on");
    assert_eq!(redactor.unprotected(), [name("SHORT"), name("EMPTY")]);
    assert_eq!(SHORTEST, 4);
    assert_eq!(Redactor::default().redact("text"), "text");
}

#[test]
fn a_stream_shows_at_once_what_cannot_be_a_value() {
    let redactor = redactor(&[("TOKEN", "sk-12345678")]);
    let mut stream = redactor.stream();
    assert_eq!(stream.push("Hello, "), "Hello, ");
    assert_eq!(stream.push("the key is s"), "the key is ");
    assert_eq!(stream.push("k-123"), "");
    assert_eq!(stream.push("45678"), "[secret TOKEN]");
    assert_eq!(stream.push(" or sk-1"), " or ");
    assert_eq!(stream.push("no"), "sk-1no");
    assert_eq!(stream.push("sk-"), "");
    assert_eq!(stream.finish(), "sk-");
}

#[test]
fn a_thousand_secrets_cost_one_pass() {
    let secrets: Vec<_> =
        (0..1_000).map(|count| (name(&format!("S{count}")), secret(&format!("value-{count:08}")))).collect();
    let redactor = Redactor::new(secrets);
    let text = "nothing secret in this line, though value-1 looks like it\n".repeat(20_000);
    let began = Instant::now();
    assert_eq!(redactor.redact(&text).len(), text.len());
    assert!(began.elapsed() < Duration::from_secs(60), "{:?} for a megabyte", began.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_text_in_pieces_is_the_same_as_in_one(
        values in prop::collection::vec("[abé]{4,7}", 1..4),
        text in "[abé]{0,60}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let keyed = values.iter().enumerate().map(|(place, value)| (name(&format!("S{place}")), secret(value)));
        let redactor = Arc::new(Redactor::new(keyed));
        let mut cuts: Vec<_> = cuts.iter().map(|cut| {
            let mut place = cut.index(text.len() + 1);
            while !text.is_char_boundary(place) { place -= 1; }
            place
        }).chain([0, text.len()]).collect();
        cuts.sort_unstable();
        let mut stream = redactor.stream();
        let mut out: String = cuts.windows(2).map(|cut| stream.push(&text[cut[0]..cut[1]])).collect();
        out.push_str(&stream.finish());
        prop_assert_eq!(&out, &*redactor.redact(&text));
        let left = out.split(['[', ']']).step_by(2);
        for rest in left {
            prop_assert!(values.iter().all(|value| !rest.contains(value.as_str())), "{out}");
        }
    }
}
