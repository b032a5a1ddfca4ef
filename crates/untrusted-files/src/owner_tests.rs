//! Who can write a folder.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};

use crate::{FoundOwner, found_owner};

#[test]
fn a_folder_of_another_user_and_one_that_all_can_write_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let owner = || found_owner(&fs::metadata(folder.path()).unwrap());
    assert_eq!(owner(), FoundOwner::User);
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    assert_eq!(owner(), FoundOwner::Everyone);
    // Only root can give a folder away, so a folder of root stands for it elsewhere.
    if chown(folder.path(), Some(12_345), None).is_ok() {
        assert_eq!(owner(), FoundOwner::Other);
    } else {
        assert_eq!(found_owner(&fs::metadata("/").unwrap()), FoundOwner::Other);
    }
}
