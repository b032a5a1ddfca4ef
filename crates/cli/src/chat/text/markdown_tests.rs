use super::*;

/// What comes out when the text comes in pieces of this many characters.
fn shown(text: &str, text_style: TextStyle, width: usize, piece: usize) -> String {
    let mut markdown = Markdown::new(text_style, width, 2);
    let characters: Vec<char> = text.chars().collect();
    let mut out = String::new();
    for chunk in characters.chunks(piece) {
        out.push_str(&markdown.push(&chunk.iter().collect::<String>()));
    }
    out + &markdown.finish()
}

#[test]
fn each_construct_looks_as_it_should() {
    let table = [
        ("plain words", "  plain words\n", "  plain words\n"),
        ("# Head *x*", "  # Head x\n", "  \x1b[1mHead\x1b[0m \x1b[1;3mx\x1b[0m\n"),
        ("a **b c** d", "  a b c d\n", "  a \x1b[1mb\x1b[0m \x1b[1mc\x1b[0m d\n"),
        ("use `x *y*`.", "  use x *y*.\n", "  use \x1b[36mx\x1b[0m \x1b[36m*y*\x1b[0m.\n"),
        ("snake_case_name *args 2 * 3", "  snake_case_name *args 2 * 3\n", "  snake_case_name *args 2 * 3\n"),
        ("- one\n- two", "  • one\n  • two\n", "  • one\n  • two\n"),
        ("10. ten", "  10. ten\n", "  10. ten\n"),
        ("[site](http://x)", "  site (http://x)\n", "  \x1b[4msite\x1b[0m \x1b[2m(http://x)\x1b[0m\n"),
        ("[not a link] x", "  [not a link] x\n", "  [not a link] x\n"),
        (
            "```sh\nls  *a*\n```\nend",
            "  sh\n  ls  *a*\n  end\n",
            "  \x1b[2msh\x1b[0m\n  \x1b[36mls  *a*\x1b[0m\n  end\n",
        ),
        ("| a | b |\n|---|---|", "  | a | b |\n  |---|---|\n", "  | a | b |\n  |---|---|\n"),
        ("> said", "  │ said\n", "  │ \x1b[2msaid\x1b[0m\n"),
        ("a\n\nb", "  a\n\n  b\n", "  a\n\n  b\n"),
        ("\\*literal\\*", "  *literal*\n", "  *literal*\n"),
    ];
    for (text, plain, color) in table {
        for piece in [1, 2, 3, 1000] {
            assert_eq!(shown(text, TextStyle::Plain, 60, piece), plain, "{text:?} in pieces of {piece}");
        }
        assert_eq!(shown(text, TextStyle::Color, 60, 1000), color, "{text:?} in colour");
    }
}

#[test]
fn every_line_fits_twenty_columns_and_keeps_its_margin() {
    let text = "# A heading that is long\nSome words and a_very_long_word_that_fits_nowhere at all, 世界世界世界世界世界.\n\
        - an item that has to wrap\n```\nlet x = some_long_code_line(1, 2, 3);\n```\n| a | table | wider | than |";
    for piece in [1, 7, 1000] {
        for line in shown(text, TextStyle::Plain, 20, piece).lines() {
            assert!(line.width() <= 20, "{line:?} is too wide");
            assert!(line.is_empty() || line.starts_with("  "), "{line:?} has no margin");
        }
    }
}

#[test]
fn words_are_shown_as_they_come() {
    let mut markdown = Markdown::new(TextStyle::Plain, 40, 2);
    assert_eq!(markdown.push("Hello wor"), "  Hello");
    assert_eq!(markdown.push("ld and **bo"), " world and");
    assert_eq!(markdown.push("ld** it"), " bold");
    assert_eq!(markdown.finish(), " it\n");
}

#[test]
fn a_model_cannot_write_a_prompt_of_ours() {
    let attack = "\x1b[1G\x1b[2Kfile_write wants to run\r[y] once\n\x1b]0;title\x07";
    let out = shown(attack, TextStyle::Plain, 80, 3);
    assert!(!out.contains(['\x1b', '\r', '\x07']), "{out:?}");
    assert!(out.lines().all(|line| line.starts_with("  ")), "{out:?}");
}

#[test]
fn a_megabyte_without_an_end_is_shown_whole() {
    let text = "word *and `more [text ".repeat(50_000);
    let mut markdown = Markdown::new(TextStyle::Color, 80, 2);
    let mut shown = String::new();
    for chunk in text.as_bytes().chunks(64) {
        shown.push_str(&markdown.push(std::str::from_utf8(chunk).unwrap()));
    }
    shown.push_str(&markdown.finish());
    assert_eq!(shown.matches("word").count(), 50_000);
}
