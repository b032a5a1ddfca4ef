//! What the loader reads, and whose it must be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use holdfast_contract::budgets::Budgets;
use holdfast_contract::problem::Code;
use holdfast_loader::{Changes, HomeVault, Loader};
use holdfast_policy::{Policy, Profile};
use holdfast_store::{Store, StoreOptions};

fn plant(extensions: &Path, id: &str) {
    fs::create_dir_all(extensions.join(id)).unwrap();
    let manifest = format!("id: {id}\nname: x\nagent: {{ instructions: help }}\n");
    fs::write(extensions.join(id).join("manifest.yaml"), manifest).unwrap();
}

fn found(changes: &Changes) -> Vec<&str> {
    changes.found.iter().map(|found| found.id.as_str()).collect()
}

// Finding C2: the folder was a link that nobody could follow when the home was checked, and its target is made later.
#[test]
fn extensions_that_somebody_else_can_write_are_not_read_and_take_nothing_away() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("holdfast.db"), StoreOptions::default()).unwrap();
    let vault = Arc::new(HomeVault::new(store, folder.path().join("generations")));
    let (extensions, theirs) = (folder.path().join("extensions"), folder.path().join("theirs"));
    plant(&extensions, "guard");
    let mut loader =
        Loader::new(extensions.clone(), vault, BTreeMap::new(), Budgets::default(), BTreeSet::new());
    let policy = Policy::profile(Profile::Standard);
    assert_eq!(found(&loader.scan(&policy)), ["guard"]);

    fs::rename(&extensions, folder.path().join("before")).unwrap();
    plant(&theirs, "evil");
    symlink(&theirs, &extensions).unwrap();
    fs::set_permissions(&theirs, Permissions::from_mode(0o777)).unwrap();
    let changes = loader.scan(&policy);
    assert_eq!((found(&changes), changes.removed.len()), (vec![], 0));
    assert_eq!(changes.rejected[0].1.code, Code::ExtensionUnreadable, "{:?}", changes.rejected);
    assert!(changes.warnings[0].what.contains("can be written by every user"), "{:?}", changes.warnings);

    fs::set_permissions(&theirs, Permissions::from_mode(0o755)).unwrap();
    let changes = loader.scan(&policy);
    assert_eq!((found(&changes), changes.removed.len()), (vec!["evil"], 1));

    fs::create_dir(theirs.join("tools")).unwrap();
    fs::write(theirs.join("tools/hello.py"), "def run() -> str:\n    return 'x'\n").unwrap();
    fs::set_permissions(theirs.join("tools"), Permissions::from_mode(0o777)).unwrap();
    let changes = loader.scan(&policy);
    assert!(changes.is_empty() && !changes.warnings.is_empty(), "{:?}", found(&changes));
}
