//! Nothing of the SDK is left behind.

use std::path::Path;

use crate::sdk;

fn files(folder: &Path, inside: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder.join(inside)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{inside}{}", entry.file_name().to_string_lossy());
        match entry.file_type().unwrap().is_dir() {
            true => files(folder, &format!("{name}/"), found),
            false => found.push(name),
        }
    }
}

#[test]
fn every_file_of_the_rust_sdk_is_carried_along() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/rust");
    let mut there = vec!["Cargo.toml".to_owned(), "macros/Cargo.toml".to_owned()];
    files(&folder, "src/", &mut there);
    files(&folder, "macros/src/", &mut there);
    there.sort();
    let mut carried: Vec<_> = sdk::RUST.iter().map(|(name, _)| (*name).to_owned()).collect();
    carried.sort();
    assert_eq!(carried, there);
    let manifest = sdk::RUST.iter().find(|(name, _)| *name == "Cargo.toml").unwrap().1;
    assert!(manifest.contains(sdk::LINTS), "what only makes sense in this workspace is found and left out");
}
