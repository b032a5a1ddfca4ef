//! Which options the user is told to type.

use super::can_be_typed;

#[test]
fn an_option_that_a_shell_would_read_otherwise_is_not_told() {
    for option in ["--network imap.example.com:993", "--network [::1]:80", "--secret MAIL_PASSWORD"] {
        assert!(can_be_typed(option), "{option}");
    }
    let long = format!("--network {}.example.com:80", "a".repeat(300));
    for option in [
        "--network a; touch b:80",
        "--network a;id:80",
        "--network $(id):80",
        "--network `id`:80",
        "--network a|sh:80",
        "--network a\nid:80",
        "--network a:80 --profile=trusted",
        "--network ex\u{430}mple.com:80",
        "--network \u{202e}moc.live:80",
        &long,
    ] {
        assert!(!can_be_typed(option), "{option}");
    }
}
