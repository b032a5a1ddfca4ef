//! The interface package is whole: every file parses and resolves.

use std::path::Path;

#[test]
fn the_package_resolves() {
    let mut resolve = wit_parser::Resolve::default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    let (package, _) = resolve.push_dir(&folder).unwrap();
    let name = &resolve.packages[package].name;
    assert_eq!(name.to_string(), "holdfast:extension@0.1.0-draft");
}
