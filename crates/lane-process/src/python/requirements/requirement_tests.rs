//! Valid requirements and their normalized form, and invalid ones.

use super::requirement::Requirement;

fn written(text: &str) -> Result<String, String> {
    Requirement::parse(text).map(|parsed| parsed.to_string())
}

#[test]
fn a_requirement_is_written_from_its_parts() {
    for (text, expected) in [
        ("httpx", "httpx"),
        ("  Zope.Interface  ", "zope-interface"),
        ("backports.lzma", "backports-lzma"),
        ("httpx >= 0.27", "httpx>=0.27"),
        ("httpx [ http2 , socks ] >=0.27 , < 1", "httpx[http2,socks]>=0.27,<1"),
        ("httpx (>=0.27,!=0.28.*)", "httpx>=0.27,!=0.28.*"),
        ("a[]~=1.2", "a~=1.2"),
        ("a==1!2.3rc4.post5.dev6+cu121.x", "a==1!2.3rc4.post5.dev6+cu121.x"),
        ("a==V1.0-ALPHA_2", "a==V1.0-ALPHA_2"),
        ("a===2024.1.post1,>1.0-3", "a===2024.1.post1,>1.0-3"),
        ("rich==13.* ; python_version<'3.13'", "rich==13.* ; python_version < \"3.13\""),
        (
            "a; (os.name == 'nt' or sys_platform!=\"linux\") and python_version not  in '3.8   3.9'",
            "a ; (os_name == \"nt\" or sys_platform != \"linux\") and python_version not in \"3.8 3.9\"",
        ),
        (
            "a; extra == 'x' and 'arm' in platform_machine",
            "a ; extra == \"x\" and \"arm\" in platform_machine",
        ),
        ("a==1 --hash=sha256:00ff  --hash=sha512:ab12", "a==1 --hash=sha256:00ff --hash=sha512:ab12"),
        ("a==1;os_name=='posix' --hash=sha256:00ff", "a==1 ; os_name == \"posix\" --hash=sha256:00ff"),
    ] {
        let once = written(text).expect(text);
        assert_eq!(once, expected, "{text}");
        assert_eq!(written(&once).expect(text), expected, "what is written reads as itself");
    }
}

#[test]
fn options_files_urls_and_variables_are_refused() {
    for text in [
        "",
        " ",
        "-r /etc/passwd",
        "-r other",
        "-e .",
        "--index-url https://example.com",
        "./local",
        "..",
        ".",
        "/abs/path.whl",
        "path.whl",
        "path-1.0-py3-none-any.WHL==1",
        "path.tar.gz",
        "path.zip[extra]",
        "~/path",
        "folder/",
        "name @ file:///etc/passwd",
        "name@file:///etc/passwd",
        "name[extra] @ https://example.com/x.whl",
        "https://example.com/x.whl",
        "git+https://example.com/x",
        "file:x",
        "$HOME",
        "${HOME}",
        "name==${VERSION}",
        "name --config-settings=a=b",
        "name --no-binary=name",
        "name --no-binary name",
        "name -r other",
        "name==1 -c other",
        "name==1.0.zip",
        "name==1.0+local.zip",
        "name==1.0+zip",
        "name==1.0\\",
        "name==1.0 # comment",
        "name=1",
        "name==",
        "name>1.*",
        "name 1.0",
        "name other",
        "name,other",
        "-name",
        "name-",
        "name[",
        "name[a",
        "name[a b]",
        "name[-a]",
        "name (>=1",
        "name ()",
        "n\u{e4}me",
        "name==\u{0661}",
        "\u{feff}name",
        "name\u{a0}==1",
    ] {
        assert!(written(text).is_err(), "{text:?} became {:?}", written(text));
    }
}

#[test]
fn control_characters_and_python_line_breaks_are_refused() {
    let breaks =
        ['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];
    let controls = ('\0'..=' ').filter(|char| *char != ' ').chain('\u{7f}'..='\u{9f}');
    for char in breaks.into_iter().chain(controls) {
        for text in [
            format!("name{char}==1"),
            format!("{char}name"),
            format!("name{char}"),
            format!("name[a{char}]"),
            format!("name==1{char}--no-index"),
            format!("name==1 --hash=sha256:00{char}--no-binary=name"),
            format!("name==1 --hash=sha256{char}:00"),
            format!("name ; os_name == 'a{char}b'"),
            format!("name ;{char}os_name == 'a'"),
        ] {
            let why = written(&text).expect_err(&text);
            assert!(why.contains(&format!("U+{:04X}", char as u32)), "{text:?}: {why}");
        }
    }
}

#[test]
fn a_hash_is_an_algorithm_and_hexadecimal_digits() {
    for hash in [
        "--hash=",
        "--hash=:",
        "--hash=sha256",
        "--hash=sha256:",
        "--hash=:00",
        "--hash=sha256:00--no-binary",
        "--hash=sha256:00--no-binary=name",
        "--hash=sha256:00,--no-index",
        "--hash=sha256:00:00",
        "--hash=sha256:XY",
        "--hash=sha256:0G",
        "--hash=SHA256:00",
        "--hash=sha-256:00",
        "--hash=sha256:${HOME}",
        "--hash=sha256:00;os_name=='a'",
        "--hash sha256:00",
        "--HASH=sha256:00",
    ] {
        for text in [
            format!("name==1 {hash}"),
            format!("name==1 --hash=sha256:00 {hash}"),
            format!("name==1 {hash} --hash=sha256:00"),
            format!("name==1 ; os_name == 'a' {hash}"),
            format!("{hash} name==1"),
            hash.to_owned(),
        ] {
            assert!(written(&text).is_err(), "{text:?}");
        }
    }
}

#[test]
fn a_marker_with_unknown_variables_or_characters_is_refused() {
    for marker in [
        "",
        "os_name",
        "os_name ==",
        "os_name == posix",
        "'a' == 'a'",
        "HOME == 'a'",
        "os_name = 'a'",
        "os_name is 'a'",
        "os_name not 'a'",
        "os_name == 'a",
        "os_name == 'a\"",
        "os_name == 'a' or",
        "os_name == 'a' orpython_version == '3'",
        "(os_name == 'a'",
        "os_name == 'a')",
        "os_name == 'a' -r other",
        "os_name == 'a --no-binary=name'",
        "os_name == '-r other'",
        "os_name == '--no-index'",
        "os_name == '${HOME}'",
        "os_name == '$(id)'",
        "os_name == '`id`'",
        "os_name == 'a#b'",
        "os_name == 'a;b'",
        "os_name == 'a@b'",
        "os_name == 'a/b'",
        "os_name == 'a\\b'",
        "os_name == 'a\u{200b}b'",
        "os_name == 'a' # comment",
        "os_name == 'a' ; os_name == 'b'",
    ] {
        let text = format!("name ; {marker}");
        assert!(written(&text).is_err(), "{text:?} became {:?}", written(&text));
    }
}

#[test]
fn deep_nesting_and_long_requirements_are_refused() {
    let nested = |depth: usize| format!("a; {}os_name == 'a'{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(written(&nested(16)).expect("as deep as it may be"), "a ; os_name == \"a\"");
    for text in [nested(17), nested(10_000), format!("a=={}", "1".repeat(70_000))] {
        assert!(written(&text).is_err());
    }
}
