//! Which interpreter is found, and what a program may read of it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use holdfast_sandbox::{Network, ProgramAccess};
use holdfast_untrusted_files::ProgramSearch;

use crate::python::interpreter::Interpreter;

fn interpreter(prefix: &Path) -> Interpreter {
    serde_json::from_value(serde_json::json!({
        "executable": prefix.join("bin/python3"),
        "version": [3, 12, 1],
        "prefix": prefix,
        "implementation": "cpython-312",
    }))
    .unwrap()
}

// Finding M2: a Python in `~/.local` and a home in `~/.local/share/holdfast`.
#[test]
fn the_prefix_of_python_is_not_readable_as_a_whole() {
    let prefix = tempfile::tempdir().unwrap();
    let home = prefix.path().join("share/holdfast");
    for folder in ["bin", "lib/python3.12", "lib/python3.9", "share/holdfast/config"] {
        fs::create_dir_all(prefix.path().join(folder)).unwrap();
    }
    for file in [
        "bin/python3",
        "lib/libpython3.12.so.1.0",
        "lib/libssl.so.3",
        "lib/secret.txt",
        "share/holdfast/.env",
    ] {
        fs::write(prefix.path().join(file), "").unwrap();
    }
    let readable = interpreter(prefix.path()).readable();
    let expected = ["bin/python3", "bin", "lib/python3.12", "lib/libpython3.12.so.1.0", "lib/libssl.so.3"];
    let mut expected = expected.map(|path| prefix.path().join(path)).to_vec();
    let mut found = readable.clone();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);

    assert_eq!(ProgramAccess::new(&readable, Network::Closed).containing(&home), None);
    let whole = [prefix.path().to_owned()];
    let whole = ProgramAccess::new(&whole, Network::Closed);
    assert_eq!(whole.containing(&home), Some(prefix.path()));
    // By another path it is the same folder.
    let link = prefix.path().join("bin/link");
    std::os::unix::fs::symlink(prefix.path(), &link).unwrap();
    assert_eq!(
        ProgramAccess::new(std::slice::from_ref(&link), Network::Closed).containing(&home),
        Some(link.as_path())
    );
    assert_eq!(whole.containing(Path::new("/nonexistent")), None);
}

/// A program that says that it is Python, and writes a marker.
fn planted(folder: &Path, marker: &Path) -> PathBuf {
    let program = folder.join(".venv/bin/python3");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    let said = r#"{"executable": "/usr/bin/python3", "version": [3, 12, 1], "prefix": "/usr", "implementation": "planted"}"#;
    let text = format!("#!/bin/sh\necho ran $SECRET >> '{}'\necho '{said}'\n", marker.display());
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

// Finding N1.
#[test]
fn a_python_that_an_agent_has_written_is_not_run() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let (work, marker) = (place.join("work"), place.join("marker"));
    let program = planted(&work, &marker);
    let linked = place.join("linked");
    fs::create_dir(&linked).unwrap();
    symlink(&program, linked.join("python3")).unwrap();
    let own = std::env::var_os("PATH").unwrap();
    let folders = [PathBuf::new(), "bin".into(), linked.clone(), program.parent().unwrap().to_owned()];
    let path = std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&own))).unwrap();
    let report = holdfast_sandbox::report();

    let found = Interpreter::find(Some(&path), std::slice::from_ref(&work), &place, &report).unwrap();
    assert!(!found.interpreter.executable.starts_with(&place), "{found:?}");
    assert_ne!(found.interpreter.identity().split(' ').next(), Some("planted"), "{found:?}");
    assert_eq!(found.skipped, [linked.join("python3"), program.clone()]);
    let warning = found.warning().unwrap();
    assert!(warning.contains(program.to_str().unwrap()) && warning.contains("is used"), "{warning}");
    assert!(!marker.exists(), "it ran");
    // Once its folder is one that agents write, an interpreter is looked for again.
    let prefix = found.interpreter.executable.parent().unwrap().to_owned();
    assert!(!found.interpreter.is_outside(&ProgramSearch::new(None, &[prefix])));
}

// Finding N1: where it is not known that agents write there, it is confined.
#[test]
fn a_python_is_asked_for_its_version_without_rights_and_without_the_environment() {
    let place = tempfile::tempdir().unwrap();
    let marker = place.path().join("marker");
    let program = planted(&place.path().join("elsewhere"), &marker);
    let path = program.parent().unwrap().as_os_str().to_owned();
    let report = holdfast_sandbox::report();
    let found = Interpreter::find(Some(&path), &[], place.path(), &report).unwrap();
    assert_eq!(found.interpreter.identity().split(' ').next(), Some("planted"), "it was asked");
    assert!(!marker.exists(), "it wrote outside: {:?}", fs::read_to_string(&marker));

    // What a wrapper runs must not lie there either.
    let wrapped = Interpreter::find(Some(&path), &["/usr".into()], place.path(), &report);
    assert!(wrapped.is_err_and(|fault| fault.message.contains("agents can write there")));
}
