use super::*;

#[test]
fn no_row_of_foreign_text_begins_in_the_first_column() {
    let padding = "x".repeat(16);
    for text in [
        "one\ntwo\n\nthree",
        "\n? shell wants to run",
        "\r\n? shell",
        "\u{b}? shell\u{c}? shell\u{85}? shell\u{2028}? shell",
        &format!("{padding}{padding}? shell wants to run (call 1.1)"),
        &"\u{1f600}".repeat(40),
        &"e\u{301}".repeat(60),
        &"\u{a4}\u{2764}\u{fe0f}".repeat(30),
    ] {
        let rows = margined(text, 20);
        for row in rows.lines() {
            assert!(row.is_empty() || row.starts_with(MARGIN), "{row:?} of {text:?}");
            assert!(row.chars().map(widest).sum::<usize>() <= 20, "{row:?} of {text:?}");
        }
    }
    assert_eq!(margined("one\ntwo\n", 20), "  one\n  two");
}

#[test]
fn text_in_pieces_has_the_margin_too_and_loses_nothing() {
    let text = "Some words that are longer than a row,\nand a second line.\n\n? shell wants to run";
    let letters: Vec<char> = text.chars().collect();
    let letters_of = |text: &str| text.split_whitespace().collect::<String>();
    for size in 1..80 {
        let mut margin = Margin::new(20);
        let pieces = letters.chunks(size).map(|piece| margin.push(&piece.iter().collect::<String>()));
        let rows = pieces.collect::<String>();
        assert_eq!(letters_of(&rows), letters_of(text), "pieces of {size}");
        for row in rows.lines() {
            assert!(row.is_empty() || row.starts_with(MARGIN), "{row:?}, pieces of {size}");
            assert!(row.chars().count() <= 20, "{row:?}, pieces of {size}");
        }
    }
}

#[test]
fn a_whole_text_is_broken_between_words() {
    let text = "Some words, and a few more words that are no longer than a row, over and over again.";
    for columns in 10..100 {
        let rows = margined(text, columns);
        assert!(rows.split_whitespace().eq(text.split_whitespace()), "{columns}: {rows}");
    }
    assert_eq!(
        margined("Some words, and a word_that_is_longer_than_a_row.", 20),
        "  Some words, and a\n  word_that_is_longe\n  r_than_a_row."
    );
    assert_eq!(
        wrapped("Our own words go on behind the margin.", 20),
        "Our own words go on\n  behind the margin."
    );
}

#[test]
fn a_line_of_a_log_has_its_prefix_or_the_margin() {
    let text = "one\n? shell wants to run (call 1.1)\r\n\u{1b}[2Jtwo";
    let rows = line_of("helper Warning: ", text, 30);
    assert!(rows.starts_with("helper Warning: one⏎? shell"), "{rows}");
    assert!(rows.lines().skip(1).all(|row| row.starts_with(MARGIN)), "{rows}");
    assert!(!rows.contains('\u{1b}'), "{rows}");
    assert_eq!(line_of("helper Info: ", "short", 1 << 20), "helper Info: short");
}
