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

/// A loader of a home's extensions in a temporary folder.
fn loader(folder: &Path) -> Loader {
    let store = Store::open(&folder.join("holdfast.db"), StoreOptions::default()).unwrap();
    let vault = Arc::new(HomeVault::new(store, folder.join("generations")));
    Loader::new(folder.join("extensions"), vault, BTreeMap::new(), Budgets::default(), BTreeSet::new())
}

// Finding C2: a user who can write the code of an extension decides as it does.
#[test]
fn an_extension_that_somebody_else_can_write_is_not_read_and_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let extensions = folder.path().join("extensions");
    plant(&extensions, "guard");
    fs::create_dir(extensions.join("tools")).unwrap();
    fs::write(extensions.join("tools/hello.py"), "def run() -> str:\n    return 'x'\n").unwrap();
    let mut loader = loader(folder.path());
    let policy = Policy::profile(Profile::Standard);
    assert_eq!(found(&loader.scan(&policy)), ["guard", "hello"]);
    let files = fs::read_dir(extensions.join("guard")).unwrap().map(|entry| entry.unwrap().path());
    let of_guard = files.chain([extensions.join("guard")]).map(|path| (path, "guard"));
    for (path, id) in of_guard.chain([(extensions.join("tools/hello.py"), "hello")]) {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        let mut refused = |why: &str| {
            loader.read_again(&id.into());
            let changes = loader.scan(&policy);
            assert_eq!((found(&changes), changes.removed.len()), (vec![], 0), "{path:?}");
            let (rejected, problem) = &changes.rejected[0];
            assert_eq!(
                (rejected.as_str(), problem.code),
                (id, Code::ExtensionUnreadable),
                "{path:?}: {problem}"
            );
            assert!(problem.what.contains(why), "{path:?}: {problem}");
        };
        fs::set_permissions(&path, Permissions::from_mode(mode | 0o002)).unwrap();
        refused("can be written by every user");
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        // Only root can give files away.
        if std::os::unix::fs::chown(&path, Some(12345), None).is_ok() {
            refused("belongs to another user");
            std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        }
        loader.read_again(&id.into());
        assert_eq!(found(&loader.scan(&policy)), [id], "{path:?}");
    }
}

// Finding H3: a folder that is gone altogether is not a decision of the user's to remove what was in it.
#[test]
fn a_folder_of_extensions_that_is_gone_removes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (extensions, aside) = (folder.path().join("extensions"), folder.path().join("aside"));
    plant(&extensions, "guard");
    let mut loader = loader(folder.path());
    let policy = Policy::profile(Profile::Standard);
    assert_eq!(found(&loader.scan(&policy)), ["guard"]);
    fs::rename(&extensions, &aside).unwrap();
    for target in [None, Some(folder.path().join("nowhere"))] {
        if let Some(target) = &target {
            symlink(target, &extensions).unwrap();
        }
        let changes = loader.scan(&policy);
        assert!(changes.removed.is_empty(), "{target:?}");
        assert_eq!(changes.warnings[0].code, Code::ExtensionUnreadable, "{target:?}");
        assert_eq!(loader.is_gone(&"guard".into()).unwrap_err().code, Code::ExtensionUnreadable);
    }
    fs::remove_file(&extensions).unwrap();
    fs::rename(&aside, &extensions).unwrap();
    assert_eq!(found(&loader.scan(&policy)), ["guard"]);
    fs::remove_dir_all(extensions.join("guard")).unwrap();
    assert_eq!(loader.scan(&policy).removed, ["guard".into()]);
}
