//! The embedded SDK is complete.

use std::path::Path;

use crate::sdk;

fn files(folder: &Path, inside: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder.join(inside)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{inside}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            files(folder, &format!("{name}/"), found);
        } else {
            found.push(name);
        }
    }
}

#[test]
fn every_file_of_the_rust_sdk_is_embedded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/rust");
    let mut there = vec!["Cargo.toml".to_owned(), "macros/Cargo.toml".to_owned()];
    files(&folder, "src/", &mut there);
    files(&folder, "macros/src/", &mut there);
    there.sort();
    let mut embedded: Vec<_> = sdk::RUST.iter().map(|(name, _)| (*name).to_owned()).collect();
    embedded.sort();
    assert_eq!(embedded, there);
    let manifest = sdk::RUST.iter().find(|(name, _)| *name == "Cargo.toml").unwrap().1;
    assert!(
        manifest.contains(sdk::LINTS),
        "the lints of this workspace are found, to be removed from copies"
    );
}
