//! Splitting and stemming.

use super::*;

fn stems(text: &str) -> Vec<String> {
    split(text).map(|word| stem(&word)).collect()
}

#[test]
fn names_and_sentences_have_the_same_stems() {
    assert_eq!(stems("read_files"), stems("ReadFile"));
    assert_eq!(stems("scheduled meetings"), stems("schedule meeting"));
    assert_eq!(stems("Ana's replies"), stems("ana reply"));
}

#[test]
fn stemming_cuts_off_endings() {
    for (a, b) in [
        ("files", "file"),
        ("searching", "search"),
        ("writes", "writing"),
        ("queries", "query"),
        ("fetched", "fetch"),
        ("boxes", "box"),
    ] {
        assert_eq!(stem(a), stem(b), "{a} {b}");
    }
    assert_eq!(stems("planned, filled"), ["plan", "fill"]);
    assert_eq!(stems("bus, class, Äpfel"), ["bus", "class", "äpfel"]);
}
