use serde_json::json;

use super::*;

fn block(hint: Value, result: Value, text_style: TextStyle) -> Option<String> {
    Hint::read(&hint).block(&Content::new(result), text_style, 60)
}

#[test]
fn each_form_looks_as_it_should() {
    let diff = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same";
    let table = [
        (json!("diff"), json!(diff), "  --- a\n  +++ b\n  @@ -1 +1 @@\n  -old\n  +new\n   same\n"),
        (json!({ "as": "diff", "of": "patch" }), json!({ "patch": "+x" }), "  +x\n"),
        (json!("code"), json!("fn main() {\n\t1\n}"), "  fn main() {\n      1\n  }\n"),
        (
            json!("json"),
            json!({ "b": [1], "a": "x" }),
            "  {\n    \"a\": \"x\",\n    \"b\": [\n      1\n    ]\n  }\n",
        ),
        (json!("markdown"), json!("- **one**\n- two"), "  • one\n  • two\n"),
        (
            json!("table"),
            json!([{ "name": "ada", "n": 1 }, { "name": "bob the builder", "n": 12, "x": true }]),
            "  n   name             x\n  1   ada\n  12  bob the builder  true\n",
        ),
    ];
    for (hint, result, plain) in table {
        assert_eq!(block(hint.clone(), result, TextStyle::Plain).as_deref(), Some(plain), "{hint}");
    }
    let coloured = block(json!("diff"), json!(diff), TextStyle::Color).unwrap();
    assert!(coloured.contains("\x1b[31m-old\x1b[0m\n") && coloured.contains("\x1b[32m+new\x1b[0m\n"));
}

#[test]
fn a_hint_that_does_not_fit_shows_nothing() {
    assert_eq!(block(json!("hologram"), json!("x"), TextStyle::Plain), None);
    assert_eq!(block(json!(7), json!("x"), TextStyle::Plain), None);
    assert_eq!(block(json!("table"), json!("no list"), TextStyle::Plain), None);
    assert_eq!(block(json!({ "as": "code", "of": "gone" }), json!({ "here": 1 }), TextStyle::Plain), None);
}

#[test]
fn a_summary_takes_its_fields_from_the_result_and_then_from_the_arguments() {
    let summary = |template: &str, result: Value| {
        let arguments = Content::new(json!({ "path": "a.txt", "lines": 1 }));
        Hint::read(&json!({ "summary": template })).summary(Some(&arguments), &Content::new(result))
    };
    let lines = json!({ "lines": 3 });
    assert_eq!(summary("{path}: {lines} lines", lines.clone()).as_deref(), Some("a.txt: 3 lines"));
    assert_eq!(summary("done", lines.clone()).as_deref(), Some("done"));
    assert_eq!(summary("{nothing} of it", lines.clone()), None);
    assert_eq!(summary("{broken", lines), None);
    assert_eq!(summary("{x}", json!({ "x": "a\nb\x1b[2J" })).as_deref(), Some("a⏎b␛[2J"));
}

#[test]
fn no_form_lets_a_result_write_to_the_terminal() {
    let attack = "\x1b[1G\x1b[2Kfile_write wants to run\r[y] once\n\x1b]0;title\x07\u{9b}2J";
    for hint in ["diff", "code", "markdown", "json", "table"] {
        let result = if hint == "table" { json!([{ attack: attack }]) } else { json!(attack) };
        let shown = block(json!(hint), result, TextStyle::Plain).unwrap();
        assert!(!shown.contains(['\x1b', '\r', '\x07', '\u{9b}']), "{hint}: {shown:?}");
        assert!(shown.lines().all(|line| line.starts_with("  ")), "{hint}: {shown:?}");
    }
}

#[test]
fn long_results_are_cut_to_the_screen() {
    let wide = "x".repeat(500);
    let long = vec![wide.as_str(); 100].join("\n");
    for hint in ["diff", "code", "markdown", "table"] {
        let rows: Vec<Value> = (0..100).map(|_| json!({ "a": wide, "b": wide })).collect();
        let result = if hint == "table" { json!(rows) } else { json!(long) };
        let shown = block(json!(hint), result, TextStyle::Plain).unwrap();
        assert!(shown.lines().count() <= MAX_RESULT_LINES + 1 && shown.contains("more lines"), "{hint}");
        assert!(shown.lines().all(|line| line.width() <= 60), "{hint}");
    }
}
