//! Special files and links at the paths of an environment that the host opens. The installer can write the environment.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, Mode, mkfifoat};

use super::{COMPLETE_MARKER, is_complete, lock, mark_complete, recent_failure};

// Finding M7.
#[tokio::test]
async fn special_files_beside_an_environment_are_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RWXU).unwrap();
    let device = folder.path().join("device");
    symlink("/dev/zero", &device).unwrap();
    for special in [&pipe, &device] {
        assert_eq!(recent_failure(special), None, "{}", special.display());
        let fault = lock(special.clone()).await.unwrap_err();
        assert!(fault.message.contains("not a regular file"), "{fault}");
    }
    fs::write(folder.path().join("failed"), "no network").unwrap();
    assert_eq!(recent_failure(&folder.path().join("failed")).as_deref(), Some("no network"));
    lock(folder.path().join("lock")).await.unwrap();
}

// Finding M7: a package that runs code while it is installed leaves a link or a pipe where the host writes its marker.
#[test]
fn what_an_installer_leaves_in_place_of_the_marker_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let of_the_user = folder.path().join("bashrc");
    fs::write(&of_the_user, "untouched").unwrap();
    let plants: [&dyn Fn(&Path); 4] = [
        &|marker| symlink(&of_the_user, marker).unwrap(),
        &|marker| symlink(folder.path().join("made"), marker).unwrap(),
        &|marker| mkfifoat(CWD, marker, Mode::RWXU).unwrap(),
        &|marker| fs::hard_link(&of_the_user, marker).unwrap(),
    ];
    for (number, plant) in plants.iter().enumerate() {
        let environment = folder.path().join(number.to_string());
        fs::create_dir(&environment).unwrap();
        plant(&environment.join(COMPLETE_MARKER));
        mark_complete(&environment, "greeting==1.0").unwrap();
        assert!(is_complete(&environment));
    }
    assert_eq!(fs::read_to_string(&of_the_user).unwrap(), "untouched");
    assert!(!folder.path().join("made").exists());
}
