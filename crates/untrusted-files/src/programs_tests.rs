//! Programs that others put on the search path.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::{ProgramSearch, working_folder};

fn program(path: &Path) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "#!/bin/sh\n").unwrap();
    path.to_owned()
}

fn joined(folders: &[PathBuf]) -> OsString {
    std::env::join_paths(folders).unwrap()
}

// Finding N1.
#[test]
fn programs_in_a_folder_that_agents_write_are_not_found() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let work = place.join("work");
    let planted = program(&work.join(".venv/bin/python3"));
    let own = program(&place.join("bin/python3"));
    // A folder, a program and a link on the way that lead into the workspace, and one through it.
    let [folder, single, chain, through] =
        ["folder", "single", "chain", "through"].map(|name| place.join(name));
    symlink(planted.parent().unwrap(), &folder).unwrap();
    fs::create_dir_all(&single).unwrap();
    symlink(&planted, single.join("python3")).unwrap();
    fs::create_dir_all(&chain).unwrap();
    symlink(single.join("python3"), chain.join("python3")).unwrap();
    symlink(place.join("bin"), work.join("out")).unwrap();
    symlink(work.join("out"), &through).unwrap();
    let planted_folder = planted.parent().unwrap().to_owned();
    let skipped = [planted_folder, folder, single, chain, through, work.join("../work/.venv/bin")];
    let all: Vec<_> = skipped.iter().cloned().chain([place.join("bin"), place.join("missing")]).collect();

    let found = ProgramSearch::new(Some(&joined(&all)), std::slice::from_ref(&work)).find("python3");
    assert_eq!(found.programs, std::slice::from_ref(&own));
    assert_eq!(found.skipped, skipped.map(|folder| folder.join("python3")));
    let open = ProgramSearch::new(Some(&joined(&all)), &[]).find("python3");
    assert_eq!(open.programs.len(), 7, "{open:?}");

    let path = ProgramSearch::new(Some(&joined(&all)), &[work]).path();
    let kept: Vec<_> = std::env::split_paths(&path).collect();
    assert!(kept.contains(&place.join("bin")) && kept.contains(&place.join("missing")), "{kept:?}");
    assert!(
        kept.iter().all(|folder| !folder.join("python3").canonicalize().is_ok_and(|it| it == planted)
            || folder.ends_with("single")
            || folder.ends_with("chain")),
        "{kept:?}"
    );
}

#[test]
fn relative_and_empty_folders_of_a_path_are_not_searched() {
    // The tests run in the folder of the crate, which has this file.
    for path in ["", ".", ":", "src", "./src::", "../untrusted-files/src"] {
        let search = ProgramSearch::new(Some(path.as_ref()), &[]);
        for name in ["programs.rs", "Cargo.toml", "src/programs.rs"] {
            assert_eq!(search.find(name).programs, Vec::<PathBuf>::new(), "{name} in `{path}`");
        }
        assert_eq!(search.path(), "", "`{path}`");
    }
}

#[test]
fn a_users_own_folder_is_not_avoided_because_a_command_is_started_there() {
    let place = tempfile::tempdir().unwrap();
    let user = place.path().canonicalize().unwrap();
    let project = user.join("project");
    fs::create_dir(&project).unwrap();
    assert_eq!(working_folder(&user, Some(&user)), None);
    assert_eq!(working_folder(user.parent().unwrap(), Some(&user)), None);
    assert_eq!(working_folder(Path::new("/"), None), None);
    assert_eq!(working_folder(&project, Some(&user)), Some(project.clone()));
    assert_eq!(working_folder(&project, None), Some(project));
}
