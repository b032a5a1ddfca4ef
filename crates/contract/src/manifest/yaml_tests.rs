//! The reader itself: what it refuses before it does any harm, and what it knows about places.

use std::fmt::Write as _;
use std::path::Path;

use holdfast_yaml::Field;

use super::yaml::{self, Codes, Format, YamlRejected};
use super::{parse, parse_bytes};
use crate::problem::{Code, Problem};

fn rejected(text: &str) -> YamlRejected {
    parse(Path::new("m.yaml"), text).unwrap_err()
}

fn only(problems: &[Problem]) -> String {
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems[0].to_string()
}

#[test]
fn ten_megabytes_are_refused_without_a_look() {
    // A look at the first byte would find another error.
    let huge = "]".repeat(10 * 1024 * 1024);
    let by_text = rejected(&huge);
    let by_bytes = parse_bytes(Path::new("m.yaml"), huge.as_bytes()).unwrap_err();
    assert_eq!(by_text, by_bytes);
    assert_eq!(
        only(&by_text.errors),
        "error[HF-1008]: the file has 10485760 bytes; the limit is 262144
  --> m.yaml
  help: A manifest has at most 256 KiB; keep data in the extension's own folder."
    );
}

#[test]
fn the_limit_itself_is_allowed() {
    let mut text = "{id: a, name: A, agent: {}} #".to_owned();
    text += &"x".repeat(256 * 1024 - text.len());
    assert!(parse(Path::new("m.yaml"), &text).is_ok());
    text.push('x');
    assert_eq!(rejected(&text).errors[0].code, Code::ManifestTooLarge);
}

#[test]
fn a_billion_laughs_are_refused() {
    let mut bomb =
        "id: a\nname: A\nagent: {}\nconfig:\n  a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"
            .to_owned();
    for level in 1..12 {
        let previous = format!("*a{}", level - 1);
        writeln!(bomb, "  a{level}: &a{level} [{}]", [previous.as_str(); 9].join(", ")).unwrap();
    }
    assert_eq!(
        only(&rejected(&bomb).errors),
        "error[HF-1008]: the file expands to more than 1048576 bytes
  --> m.yaml:10:27 (config.a5[3])
  help: Each alias (`*name`) repeats its anchor's value; use fewer of them."
    );
}

#[test]
fn one_long_text_repeated_is_a_bomb_too() {
    let text = format!(
        "id: a\nname: &n {}\nagent: {{}}\nconfig: {{a: [{}]}}\n",
        "x".repeat(100_000),
        "*n, ".repeat(1000)
    );
    assert_eq!(rejected(&text).errors[0].code, Code::ManifestTooLarge);
}

#[test]
fn depth_is_bounded_with_and_without_aliases() {
    let flow = format!("config: {}{}", "[".repeat(100), "]".repeat(100));
    let block: String =
        (0..100).fold(String::new(), |text, level| format!("{text}{}a:\n", " ".repeat(level)));
    let mut aliased = format!("a0: &a0 {}{}\n", "[".repeat(40), "]".repeat(40));
    for level in 1..2000 {
        writeln!(aliased, "a{level}: &a{level} [[[[*a{}]]]]", level - 1).unwrap();
    }
    for text in [flow, block, aliased] {
        let problem = &rejected(&text).errors[0];
        assert_eq!(problem.code, Code::ManifestTooLarge);
        assert_eq!(problem.what, "lists and mappings nest more than 64 levels deep");
    }
}

#[test]
fn aliases_and_merges_mean_what_they_say() {
    let text = "\
id: a
name: A
agent: {}
config:
  base: &base {host: localhost, port: 1}
  other: &other {port: 2, path: /}
  one: *base
  two: {<<: *base, port: 3}
  three:
    <<: [*base, *other]
";
    let config = parse(Path::new("m.yaml"), text).unwrap().manifest.config;
    assert_eq!(config["one"], config["base"]);
    assert_eq!(config["two"], serde_json::json!({ "host": "localhost", "port": 3 }));
    assert_eq!(config["three"], serde_json::json!({ "host": "localhost", "port": 1, "path": "/" }));
}

#[test]
fn bytes_that_are_no_text_are_pointed_at() {
    let rejected = parse_bytes(Path::new("m.yaml"), b"id: a\nname: \xc3\xa4\xff\n").unwrap_err();
    assert_eq!(
        only(&rejected.errors),
        "error[HF-1001]: the file is not valid UTF-8: invalid byte 0xff
  --> m.yaml:2:8
  help: Save the file as UTF-8."
    );
    let cut = parse_bytes(Path::new("m.yaml"), b"id: a\xc3").unwrap_err();
    assert_eq!(cut.errors[0].location.as_ref().map(|at| (at.line, at.column)), Some((1, 6)));
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_fine() {
    let parsed = parse_bytes(Path::new("m.yaml"), b"\xef\xbb\xbfid: a\r\nname: A\r\nagent: {}\r\n").unwrap();
    assert_eq!(parsed.manifest.name, "A");
    assert_eq!(parsed.source.locate("name").line, 2);
}

#[test]
fn fields_can_be_located_later() {
    let text = "id: a\nname: A\nagent: {limits: {}}\ndepends_on:\n  - kv\n  - clock\nschedules:\n  - name: n\n    cron: nonsense\n";
    let parsed = parse(Path::new("m.yaml"), text).unwrap();
    for (field, line, column) in [
        ("depends_on[1]", 6, 5),
        ("schedules[0].cron", 9, 11),
        ("schedules[0].timezone", 8, 5),
        ("agent.limits.max_turns", 3, 17),
        ("entrypoint", 1, 1),
        ("depends_on[7]", 5, 3),
    ] {
        let location = parsed.source.locate(field);
        assert_eq!((location.line, location.column, location.field.as_deref()), (line, column, Some(field)));
    }
}

#[test]
fn many_problems_are_counted_rather_than_shown() {
    let text = (0..500)
        .fold("id: a\nname: A\nagent: {}\n".to_owned(), |text, index| format!("{text}zz{index}: 1\n"));
    let warnings = parse(Path::new("m.yaml"), &text).unwrap().warnings;
    assert_eq!(warnings.len(), 50);
    assert!(warnings[49].help.ends_with("(And 450 more like these.)"), "{}", warnings[49].help);
}

#[test]
fn what_would_steer_a_terminal_is_escaped() {
    let problem = rejected(r#"{id: "a\e[2J\u202e", name: A, agent: {}}"#).errors.remove(0);
    assert_eq!(problem.what, r"`a\u{1b}[2J\u{202e}` cannot be an extension's id");
}

#[test]
fn other_files_are_read_under_their_own_codes() {
    const SETTINGS: Format =
        Format { name: "settings", max_bytes: 100, codes: Codes::all(Code::SettingsInvalid) };
    let read = |text: &str| {
        yaml::read(&SETTINGS, Path::new("settings.yaml"), text, |root: &Field<'_>| {
            root.object(|object| object.required("port", "8080", |field| field.whole(1..=65_535_u16)))
        })
    };
    assert_eq!(read("port: 80").unwrap().value, 80);
    let rejected = read("prot: 80").unwrap_err();
    assert_eq!(
        rejected.to_string(),
        "error[HF-1101]: `port` is missing
  --> settings.yaml:1:1 (port)
  help: Add `port: 8080`.
warning[HF-1101]: unknown field `prot`
  --> settings.yaml:1:1 (prot)
  help: Did you mean `port`?"
    );
    assert_eq!(read(&" ".repeat(101)).unwrap_err().errors[0].code, Code::SettingsInvalid);
}

/// Damages a manifest in thousands of ways, the same ones each time: nothing may panic or hang.
#[test]
fn damaged_manifests_are_survived() {
    let whole = super::manifest_tests::EVERYTHING;
    let pieces = [
        "\t", "*", "&a ", "<<: ", "- ", ": ", "[", "}", "\"", "'", "|", "!!", "? ", "---\n", "%", "\u{0}",
        "ä",
    ];
    let mut state: u64 = 1;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    for _ in 0..3000 {
        let mut damaged = whole.as_bytes().to_vec();
        for _ in 0..=random(4) {
            let at = random(damaged.len());
            let end = (at + random(12)).min(damaged.len());
            damaged.splice(at..end, pieces[random(pieces.len())].bytes());
        }
        let outcome = parse_bytes(Path::new("m.yaml"), &damaged);
        assert!(outcome.is_ok() || !outcome.unwrap_err().errors.is_empty());
    }
}

#[test]
fn a_stricter_reading_stops_at_what_it_refuses() {
    let format = Format { name: "settings", max_bytes: 1024, codes: Codes::all(Code::SettingsInvalid) };
    let read = |text: &str| {
        let read = yaml::read(&format, Path::new("settings.yaml"), text, |field| {
            field.object(|object| object.required("port", "8080", |field| field.whole(1..=65_535_u16)))
        });
        yaml::stricter(read, |problem| problem.what.starts_with("unknown field"))
    };
    let twice = read("port: 1\nport: 2\n").unwrap();
    assert_eq!((twice.value, twice.warnings.len()), (2, 1));
    assert!(twice.warnings[0].to_string().starts_with("warning[HF-1101]: duplicate key `port`"));
    let both = read("prot: 1\nport: x\nport: y\n").unwrap_err();
    assert_eq!((both.errors.len(), both.warnings.len()), (2, 1));
    assert!(both.errors[0].to_string().starts_with("error[HF-1101]: unknown field `prot`"));
    assert_eq!(Problem::from(both.clone()).to_string(), both.to_string());
}
