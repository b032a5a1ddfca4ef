//! Homes for tests, and processes that may do less than the one that tests.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::Home;

/// A folder that goes away, and a home in it.
pub(crate) struct Scene {
    pub(crate) folder: TempDir,
    pub(crate) home: Home,
}

/// A home that has its folders and no files.
pub(crate) fn scene() -> Scene {
    let scene = empty();
    scene.home.ensure().unwrap();
    scene
}

/// A home that does not exist yet.
pub(crate) fn empty() -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let home = at(&folder.path().join("home"));
    Scene { folder, home }
}

/// The home in a folder, on a machine without variables.
pub(crate) fn at(root: &Path) -> Home {
    Home::locate(Some(root.to_owned()), &nothing).unwrap()
}

pub(crate) fn nothing(_: &str) -> Option<OsString> {
    None
}

pub(crate) fn write(path: PathBuf, text: impl AsRef<[u8]>) {
    fs::write(path, text).unwrap();
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Set in the processes that tests start.
const CHILD: &str = "HOLDFAST_TEST_CHILD";

/// The folder that the parent gave to this process, if it is such a child.
pub(crate) fn given_by_parent() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// Runs one test of this binary again, in a process that `shell` prepares and then becomes: it gets the program as `$0`, the test's name as
/// `$1` and a folder as `$2`.
pub(crate) fn rerun(test: &str, shell: &str) {
    let folder = tempfile::tempdir().unwrap();
    set_mode(folder.path(), 0o777);
    // Where the build lies may be closed to others.
    let program = folder.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let place = folder.path().join("place");
    fs::create_dir(&place).unwrap();
    set_mode(&place, 0o777);
    let output = Command::new("sh")
        .args(["-c", shell])
        .args([program.as_os_str(), test.as_ref(), place.as_os_str()])
        .env(CHILD, &place)
        .output()
        .unwrap();
    let shown =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
}
