//! What a program may read of an interpreter.

use std::fs;
use std::path::Path;

use holdfast_sandbox::{Network, ProgramAccess};

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
