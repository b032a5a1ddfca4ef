use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::io::Errno;

use crate::beneath::stepwise;

#[test]
fn without_openat2_links_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("real")).unwrap();
    fs::write(at("real/a.txt"), "one").unwrap();
    symlink("real", at("folder")).unwrap();
    symlink("real/a.txt", at("file")).unwrap();
    let root = fs::File::open(folder.path()).unwrap();
    let find = |path: &str| stepwise::find(&root, Path::new(path)).map(drop);
    assert_eq!(find("real/a.txt"), Ok(()));
    assert_eq!(find("./real/./a.txt"), Ok(()));
    assert_eq!(find("folder/a.txt"), Err(Errno::NOTDIR));
    assert_eq!(find("file"), Err(Errno::LOOP));
    assert_eq!(find("real/../real/a.txt"), Err(Errno::XDEV));
    assert_eq!(find("/etc/passwd"), Err(Errno::XDEV));
    assert!(stepwise::folder(&root, Path::new("real")).is_ok());
    assert_eq!(stepwise::folder(&root, Path::new("folder")).map(drop), Err(Errno::NOTDIR));
}
