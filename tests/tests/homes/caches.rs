//! What lanes derive from extensions is a cache that does not grow with every reload.

use std::fs;

use holdfast_contract::wire::Vault;
use holdfast_loader::HomeVault;
use holdfast_store::{Store, StoreOptions};

// Low finding of the reliability review: two files stayed in `generations/` for each reload.
#[test]
fn cached_files_of_earlier_versions_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("holdfast.db"), StoreOptions::default()).unwrap();
    let generations = folder.path().join("generations");
    let vault = HomeVault::new(store, generations.clone());
    vault.keep_derived("descriptors-kept", b"used all the time");
    fs::write(generations.join("executing"), "").unwrap();
    for number in 0..50 {
        vault.keep_derived(&format!("compiled-{number}"), b"code");
        assert!(vault.derived("descriptors-kept").is_some(), "what is used stays");
    }
    let files = fs::read_dir(&generations).unwrap().count();
    assert!(files <= 17, "{files} files are left");
    assert!(vault.derived("compiled-49").is_some() && vault.derived("compiled-0").is_none());
    assert!(generations.join("executing").exists(), "other files are not touched");
}
