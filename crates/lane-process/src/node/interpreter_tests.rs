//! Which programs are taken for Node.

use std::ffi::OsString;
use std::fs;

use super::interpreter::candidates;

#[test]
fn programs_of_the_folder_that_the_user_works_in_are_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let [work, other] = ["work", "other"].map(|name| folder.path().join(name));
    for place in [&work, &other] {
        fs::create_dir(place).unwrap();
        fs::write(place.join("node"), "").unwrap();
    }
    std::os::unix::fs::symlink(work.join("node"), folder.path().join("node")).unwrap();
    let path =
        std::env::join_paths([&work, &other, &folder.path().to_owned(), &"relative".into(), &"".into()])
            .unwrap();
    let named = |closed| -> Vec<_> {
        let all = candidates(&path, closed);
        all.into_iter().filter(|path| path.starts_with(folder.path())).collect()
    };
    assert_eq!(named(Some(work.as_path())), [other.join("node")], "a link into it counts as inside");
    assert_eq!(named(None), [work.join("node"), other.join("node"), folder.path().join("node")]);
    let nowhere = candidates(&OsString::new(), None);
    assert!(nowhere.iter().all(|path| path.is_absolute()), "{nowhere:?}");
}
