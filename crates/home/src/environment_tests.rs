//! `.env`: what it sets, who wins, and that values never show.

use std::ffi::OsString;

use holdfast_contract::problem::{Code, Severity};
use secrecy::ExposeSecret;

use crate::HomeEnvironment;
use crate::testing::{Scene, nothing, scene, set_mode, write};

fn with(text: impl AsRef<[u8]>) -> Scene {
    let scene = scene();
    write(scene.home.env_file(), text);
    set_mode(&scene.home.env_file(), 0o600);
    scene
}

fn value(environment: &HomeEnvironment, name: &str) -> Option<String> {
    environment.get(name).map(|secret| secret.expose_secret().to_owned())
}

#[test]
fn lines_are_read_as_people_write_them() {
    let text = "# keys\n\nA=1\nexport B=two words\nC=\"with # and\\nline\"\nD='$literal'\nE=\nF=\"a\nb\"\n";
    for text in [
        text.replace("two words", "'two words'"),
        format!("\u{feff}{}", text.replace("two words", "\"two words\"").replace("F=\"a\nb\"", "F=a")),
    ] {
        let scene = with(&text);
        let environment = HomeEnvironment::load(&scene.home, nothing).unwrap();
        let values = ["A", "B", "C", "D", "E"].map(|name| value(&environment, name));
        let expected = [Some("1"), Some("two words"), Some("with # and\nline"), Some("$literal"), None];
        assert_eq!(values.each_ref().map(Option::as_deref), expected);
    }
    let crlf = with("A=1\r\nB=2\r\n");
    let environment = HomeEnvironment::load(&crlf.home, nothing).unwrap();
    assert_eq!((value(&environment, "A"), value(&environment, "B")), (Some("1".into()), Some("2".into())));
}

#[test]
fn the_process_wins_and_nothing_is_written_to_it() {
    let scene = with("SET=file\nONLY_FILE_HOLDFAST_TEST=file\nEMPTY=file\n");
    let process = |name: &str| match name {
        "SET" => Some(OsString::from("process")),
        "EMPTY" => Some(OsString::new()),
        _ => None,
    };
    let environment = HomeEnvironment::load(&scene.home, process).unwrap();
    for (name, expected) in [
        ("SET", Some("process")),
        ("ONLY_FILE_HOLDFAST_TEST", Some("file")),
        ("EMPTY", Some("file")),
        ("NONE", None),
    ] {
        assert_eq!(value(&environment, name).as_deref(), expected, "{name}");
    }
    assert!(std::env::var_os("ONLY_FILE_HOLDFAST_TEST").is_none());
    assert_eq!(environment.names().collect::<Vec<_>>(), ["EMPTY", "ONLY_FILE_HOLDFAST_TEST", "SET"]);
}

#[test]
fn values_never_show() {
    let scene = with("KEY=sk-secret\n");
    let environment = HomeEnvironment::load(&scene.home, nothing).unwrap();
    let shown = format!("{environment:?} {:?}", environment.get("KEY"));
    assert!(shown.contains("KEY") && !shown.contains("sk-secret"), "{shown}");
}

#[test]
fn a_bad_line_is_named_and_not_quoted() {
    let cases: [(&[u8], u32, &str); 6] = [
        (b"A=1\n\n# c\nsk-secret\n", 4, "the line sets nothing"),
        (b"A=1\nB=sk-secret two\nC=3\n", 2, "the line cannot be understood"),
        (b"A=1\r\nB=sk-secret two\r\n", 2, "the line cannot be understood"),
        (b"A=1\nB=\"sk-secret\nC=3\nD=4\n", 2, "a quote that begins here is not closed"),
        (b"1=sk-secret\n", 1, "the line cannot be understood"),
        (b"A=1\nB=sk-secret\xff\n", 2, "the file is not valid UTF-8"),
    ];
    for (text, line, expected) in cases {
        let scene = with(text);
        let problem = HomeEnvironment::load(&scene.home, nothing).unwrap_err();
        assert_eq!((problem.code, problem.what.as_str()), (Code::EnvironmentInvalid, expected));
        assert_eq!(problem.location.as_ref().unwrap().line, line, "{problem}");
        assert!(!problem.to_string().contains("secret"), "{problem}");
    }
}

#[test]
fn a_file_that_others_can_read_is_not_read() {
    for mode in [0o644, 0o640, 0o604, 0o620] {
        let scene = with("KEY=sk-secret\n");
        set_mode(&scene.home.env_file(), mode);
        let environment = HomeEnvironment::load(&scene.home, nothing).unwrap();
        assert!(environment.get("KEY").is_none());
        let [warning] = environment.warnings() else { panic!("{:?}", environment.warnings()) };
        assert_eq!((warning.code, warning.severity), (Code::EnvironmentExposed, Severity::Warning));
        assert!(warning.to_string().starts_with("warning[HF-1302]: others can read "), "{warning}");
        assert!(
            warning.help.contains(&format!("chmod 600 {}", scene.home.env_file().display())),
            "{warning}"
        );
    }
}

#[test]
fn no_file_sets_nothing() {
    let scene = scene();
    let environment = HomeEnvironment::load(&scene.home, nothing).unwrap();
    assert!(environment.get("A").is_none() && environment.warnings().is_empty());
}
