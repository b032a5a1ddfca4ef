use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::{FileDraft, replace};

#[test]
fn replace_swaps_the_content_and_leaves_no_draft() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.yaml");
    for text in ["old", "new"] {
        replace(&file, text.as_bytes(), 0o640).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_stale_draft_is_replaced_and_a_link_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (file, draft, victim) =
        (folder.path().join("a"), folder.path().join(".a.draft"), folder.path().join("victim"));
    fs::write(&victim, "untouched").unwrap();
    symlink(&victim, &draft).unwrap();
    FileDraft::write(draft, &file, b"content", 0o600).unwrap().commit().unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    assert_eq!(fs::read_to_string(&file).unwrap(), "content");
}

#[test]
fn commit_new_does_not_overwrite() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    let create = |text: &str| {
        let draft = folder.path().join(".key.draft");
        FileDraft::write(draft, &file, text.as_bytes(), 0o600).unwrap().commit_new().unwrap()
    };
    assert!(create("first"));
    assert!(!create("second"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "first");
}
