use super::*;

#[test]
fn nothing_that_a_model_writes_reaches_the_terminal_as_a_command() {
    let attacks = [
        ("\x1b[2J\x1b[H", "␛[2J␛[H"),
        ("\x1b]0;a new title\x07", "␛]0;a new title␇"),
        ("\x1b]8;;http://evil\x1b\\click", "␛]8;;http://evil␛\\click"),
        ("\u{9b}31m", "�31m"),
        ("safe\rfake", "safefake"),
        ("a\u{8}\u{8}b", "a␈␈b"),
        ("\x7f\x00\x0e", "␡␀␎"),
        ("pay \u{202e}001$\u{202c}", "pay �001$�"),
        ("hid\u{200b}den\u{e0041}", "hid�den�"),
        ("line\u{2028}break", "line�break"),
    ];
    for (attack, shown) in attacks {
        assert_eq!(sanitize_for_terminal(attack), shown, "{attack:?}");
    }
}

#[test]
fn what_people_write_stays_as_it_is() {
    for text in [
        "plain",
        "Grüße, 世界",
        "👩‍👩‍👧 family",
        "❤\u{fe0f} and ❤\u{fe0f}\u{200d}🔥",
        "two\nlines",
        "العربية",
        "می\u{200c}خواهم",
        "क्\u{200d}ष",
    ] {
        assert_eq!(sanitize_for_terminal(text), text);
    }
    assert_eq!(sanitize_for_terminal("a\tb"), "a    b");
}

#[test]
fn a_selector_is_shown_once_and_a_joiner_only_between_what_it_joins() {
    for (text, shown) in [
        ("❤\u{fe0f}\u{fe0f}🔥", "❤\u{fe0f}�🔥"),
        ("❤\u{200d}\u{fe0f}", "❤��"),
        ("❤\u{fe0f}\u{200d}", "❤\u{fe0f}�"),
        ("❤\u{200d}\u{200d}🔥", "❤��🔥"),
        ("❤\u{200d}a", "❤�a"),
        ("❤\u{200d}\n🔥", "❤�\n🔥"),
        ("❤\r\u{fe0f}", "❤�"),
        ("❤\u{200c}🔥", "❤�🔥"),
        ("می\u{200c} x", "می� x"),
        ("a\u{fe0f}\u{200d}b", "a��b"),
    ] {
        assert_eq!(sanitize_for_terminal(text), shown, "{text:?}");
        let mut sanitizer = Sanitizer::default();
        let mut pieces: String = text.chars().map(|letter| sanitizer.push(&letter.to_string())).collect();
        pieces.extend(sanitizer.finish());
        assert_eq!(pieces, shown, "{text:?} in pieces");
    }
}

#[test]
fn one_line_is_one_line() {
    assert_eq!(one_line("ok\n[y] once"), "ok⏎[y] once");
}

#[test]
fn cutting_counts_columns() {
    for (text, columns, short) in [("hello", 5, "hello"), ("hello", 4, "hel…"), ("世界世界", 5, "世界…")]
    {
        assert_eq!(cut(text, columns), short);
    }
}

#[test]
fn json_is_escaped_and_stays_the_same() {
    let value = serde_json::json!({ "cmd": "rm \u{202e}x\u{9b}1m\u{e0041}\u{1b}[2J ok ü" });
    let safe = safe_json(&serde_json::to_string_pretty(&value).unwrap());
    assert_eq!(sanitize_for_terminal(&safe), safe);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
}
