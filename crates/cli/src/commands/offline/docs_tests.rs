use std::collections::BTreeSet;
use std::path::Path;

use super::*;

/// The pages of a folder, as `docs` names them.
fn names(folder: &str) -> BTreeSet<String> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(folder);
    let entries = std::fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path());
    let pages = entries.filter(|path| path.extension().is_some_and(|kind| kind == "md"));
    let stems = pages.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
    stems.map(|stem| Path::new(folder).join(stem).to_str().unwrap().to_owned()).collect()
}

#[test]
fn every_page_of_the_documentation_is_in_the_program() {
    let mut expected = names("");
    expected.remove("README");
    expected.extend(names("extensions"));
    expected.extend(names("reference"));
    let there: BTreeSet<String> = PAGES.iter().map(|page| page.name.to_owned()).collect();
    assert_eq!(there, expected);
    let short: BTreeSet<&str> = PAGES.iter().map(Page::short).collect();
    assert_eq!(short.len(), PAGES.len());
    assert!(PAGES.iter().all(|page| !page.title().is_empty()));
}
