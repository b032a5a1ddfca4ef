//! Which programs are taken for Node.

use std::fs;

use holdfast_untrusted_files::ProgramSearch;

use super::interpreter::candidates;

#[test]
fn programs_of_folders_that_agents_can_write_are_not_run() {
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
    let named = |avoided: &[std::path::PathBuf]| -> Vec<_> {
        let all = candidates(&ProgramSearch::new(Some(&path), avoided)).programs;
        all.into_iter().filter(|path| path.starts_with(folder.path())).collect()
    };
    assert_eq!(named(std::slice::from_ref(&work)), [other.join("node")], "a link into it counts as inside");
    assert_eq!(named(&[]), [work.join("node"), other.join("node"), folder.path().join("node")]);
    let nowhere = candidates(&ProgramSearch::new(None, &[])).programs;
    assert!(nowhere.iter().all(|path| path.is_absolute()), "{nowhere:?}");
}
