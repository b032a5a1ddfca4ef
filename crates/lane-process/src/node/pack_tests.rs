//! What an activation consists of, and what is installed for it.

use std::collections::BTreeMap;

use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Bundle, Vault};
use serde_json::json;

use super::pack::{NeededPackages, PackSource, source_of};

struct Files(BTreeMap<Digest, Vec<u8>>);

impl Vault for Files {
    fn bundle(&self, _: Digest) -> Result<Bundle, Fault> {
        unreachable!()
    }

    fn file(&self, digest: Digest) -> Result<Vec<u8>, Fault> {
        Ok(self.0[&digest].clone())
    }

    fn derived(&self, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn keep_derived(&self, _: &str, _: &[u8]) {}
}

fn source(manifest: &str, files: &[(&str, &str)]) -> Result<(PackSource, NeededPackages), Fault> {
    let mut bundle = Bundle {
        lane: "node".to_owned(),
        manifest: format!("id: pack-kit\nname: Kit\n{manifest}"),
        entrypoint: String::new(),
        files: BTreeMap::new(),
        config: Content::new(json!({})),
        grants: Default::default(),
        budgets: Default::default(),
        pinned: None,
    };
    let mut contents = BTreeMap::new();
    for (name, text) in files {
        let digest = Digest::of(text.as_bytes());
        bundle.files.insert((*name).to_owned(), digest);
        contents.insert(digest, text.as_bytes().to_vec());
    }
    source_of(&bundle.parsed().unwrap(), &bundle, &Files(contents))
}

#[test]
fn a_package_is_named_with_or_without_versions() {
    for (named, name, line) in [
        ("kit", "kit", "kit@*"),
        ("'@some/kit'", "@some/kit", "@some/kit@*"),
        ("'@some/kit@^1.2'", "@some/kit", "@some/kit@^1.2"),
    ] {
        let (source, needed) = source(&format!("package: {named}\n"), &[]).unwrap();
        assert_eq!((source, needed.lines()), (PackSource::Package(name.to_owned()), vec![line.to_owned()]));
    }
}

#[test]
fn only_packages_of_the_registry_are_installed() {
    for named in
        ["'../x'", "'kit@file:../x'", "'kit@git+ssh://x/y'", "'kit@https://x/y.tgz'", "'a/b'", "'@a'"]
    {
        let outcome = source(&format!("package: {named}\n"), &[("index.mjs", "")]);
        let refused = outcome.as_ref().is_err_and(|fault| fault.code == Code::PackagesRefused);
        let is_folder = named == "'../x'";
        assert!(refused || is_folder, "{named}: {outcome:?}");
    }
    let own = json!({ "dependencies": { "x": "file:/etc" } }).to_string();
    let fault = source("package: .\n", &[("package.json", &own)]).unwrap_err();
    assert!(fault.message.contains("`file:/etc` of the package `x`"), "{fault}");
}

#[test]
fn a_folder_names_its_packages_and_the_host_is_replaced() {
    let own = json!({
        "dependencies": { "left": "^1" },
        "optionalDependencies": { "right": "2" },
        "peerDependencies": { "host": ">=3", "extra": "*" },
        "peerDependenciesMeta": { "extra": { "optional": true } },
        "devDependencies": { "builder": "*" },
    });
    let files = [("package.json", own.to_string()), ("package-lock.json", "{}".to_owned())];
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let (from, needed) = source("", &files).unwrap();
    assert_eq!(from, PackSource::Files(None));
    assert_eq!(needed.lines(), ["host@>=3", "left@^1", "right@2"]);
    assert_eq!(needed.lock.as_deref(), Some("{}"));
    let manifest = needed.manifest(Some(("host", "/worker/standin")));
    assert_eq!(manifest["overrides"]["host"], "file:/worker/standin");
    assert_eq!(manifest["peerDependencies"]["host"], "file:/worker/standin");
    assert!(!needed.is_empty("host"));
    assert_ne!(needed.digest("node 20"), needed.digest("node 22"));
    let alone = json!({ "peerDependencies": { "host": ">=3" } }).to_string();
    assert!(source("", &[("package.json", &alone)]).unwrap().1.is_empty("host"));
    assert!(source("", &[("index.mjs", "")]).unwrap().1.is_empty("host"));
}
