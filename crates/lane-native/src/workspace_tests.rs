//! Which folders may be a workspace.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use holdfast_contract::message::TurnContext;
use holdfast_contract::problem::Code;

use crate::mounts::Mounts;
use crate::{Workspace, Workspaces};

#[test]
fn a_workspace_that_overlaps_the_home_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |path: &str| scratch.path().join(path);
    for folder in ["work", "home/data/kv", "all/home"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    symlink(at("home"), at("link")).unwrap();
    fs::write(at("file"), "").unwrap();

    let work = Workspace::new(at("work"), at("home")).unwrap();
    assert_eq!(work.path(), at("work").canonicalize().unwrap());
    assert_eq!(work.home(), at("home").canonicalize().unwrap());

    let cases = [
        ("/".into(), at("home"), "the root of the disk"),
        (at("home"), at("home"), "the home folder lies in it"),
        (at("home/data"), at("home"), "it lies in the home folder"),
        (at("link"), at("home"), "the home folder lies in it"),
        (at("link/data/kv"), at("home"), "it lies in the home folder"),
        (at("work/../home/data"), at("home"), "it lies in the home folder"),
        (at("all"), at("all/home"), "the home folder lies in it"),
        (scratch.path().into(), at("home"), "the home folder lies in it"),
        (at("none"), at("home"), "cannot be used"),
        (at("work"), at("none"), "cannot be used"),
        (at("file"), at("home"), "cannot be opened"),
    ];
    for (root, home, reason) in cases {
        let problem = Workspace::new(&root, home).unwrap_err();
        assert!(problem.what.contains(reason), "{root:?}: {problem}");
    }
}

// Finding N6: a command that names another home is started where the usual one is or will be.
#[test]
fn a_workspace_that_overlaps_the_usual_home_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |path: &str| scratch.path().canonicalize().unwrap().join(path);
    for folder in ["home", "user/project", "user/data/holdfast/extensions", "linked/guard", "work"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    symlink(at("linked"), at("through")).unwrap();
    symlink(at("linked/guard"), at("user/data/holdfast/extensions/guard")).unwrap();
    let usual = [at("user/data/holdfast"), at("user/missing/holdfast"), at("through/holdfast")];
    let workspaces = Workspaces::new(at("home"), None).apart_from(&usual);
    for refused in ["user", "user/data", "user/data/holdfast/extensions", "linked"] {
        let problem = workspaces.check(at(refused)).unwrap_err();
        assert!(problem.what.contains("cannot be a workspace"), "{refused}: {problem}");
    }
    for allowed in ["work", "user/project"] {
        workspaces.check(at(allowed)).unwrap();
    }
    // What an extension of the usual home is linked from decides there.
    let turn = |folder: &str| {
        let workspace = Some(at(folder).to_str().unwrap().into());
        workspaces.of(&TurnContext { workspace, ..TurnContext::default() })
    };
    turn("work").unwrap();
    assert_eq!(turn("linked/guard").unwrap_err().code, Code::WorkspaceOverlap);
}

#[test]
fn overlapping_mounts_are_detected() {
    let mounts = Mounts::parse(
        b"20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
          21 20 0:5 / /proc rw - proc proc rw\n\
          22 20 8:1 /srv/home /work/inner rw - ext4 /dev/sda1 rw\n\
          23 20 8:1 /srv /mirror rw shared:1 - ext4 /dev/sda1 rw\n\
          24 20 8:2 / /other rw - ext4 /dev/sdb1 rw\n\
          25 20 8:1 /srv/ho\\040me /spaced rw - ext4 /dev/sda1 rw\n\
          nonsense\n",
    );
    let home = Path::new("/srv/home");
    for (root, expected) in [
        ("/work", true),
        ("/work/inner", true),
        ("/work/inner/data", true),
        ("/mirror", true),
        ("/mirror/home/config", true),
        ("/mirror/else", false),
        ("/other", false),
        ("/other/srv/home", false),
        ("/elsewhere", false),
        ("/work/outer", false),
    ] {
        assert_eq!(mounts.overlap(Path::new(root), home), expected, "{root}");
        assert_eq!(mounts.overlap(home, Path::new(root)), expected, "{root}, the other way round");
    }
    assert!(mounts.overlap(Path::new("/spaced"), Path::new("/srv/ho me")));
}

// Finding B4.
#[test]
fn each_session_has_its_own_folder_and_none_reaches_the_home() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |path: &str| scratch.path().canonicalize().unwrap().join(path);
    for folder in ["home/data", "one", "two", "real"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    let workspaces = Workspaces::new(at("home"), None);
    let of = |folder: &Path| {
        let workspace = Some(folder.to_str().unwrap().into());
        workspaces.of(&TurnContext { workspace, ..TurnContext::default() })
    };
    for name in ["one", "two"] {
        assert_eq!(of(&at(name)).unwrap().path(), at(name));
    }
    // Every way to name the home, what is in it and what contains it.
    symlink(at("home"), at("link")).unwrap();
    for planted in
        [at("home"), at("home/data"), at(""), at("link"), at("link/data"), at("one/../home"), "/".into()]
    {
        let fault = of(&planted).unwrap_err();
        assert_eq!(fault.code, Code::WorkspaceRefused, "{planted:?}");
    }
    // A folder that was replaced by a link to another one since the session began.
    fs::remove_dir(at("two")).unwrap();
    symlink(at("real"), at("two")).unwrap();
    assert_eq!(of(&at("two")).unwrap_err().code, Code::WorkspaceRefused);
    assert_eq!(workspaces.of(&TurnContext::default()).unwrap_err().code, Code::WorkspaceMissing);
    let named = Workspaces::from(Workspace::new(at("one"), at("home")).unwrap());
    assert_eq!(named.of(&TurnContext::default()).unwrap().path(), at("one"));
}

// Finding C2: the workspace was safe when the session began.
#[test]
fn a_link_that_is_made_later_is_noticed_at_the_next_call() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |path: &str| scratch.path().join(path);
    for folder in ["work/guard", "home/extensions/tools", "elsewhere"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    let own = at("work").canonicalize().unwrap().to_str().unwrap().into();
    let of_session = TurnContext { workspace: Some(own), ..TurnContext::default() };
    let workspaces = Workspaces::from(Workspace::new(at("work"), at("home")).unwrap());
    let refused = |expected: bool| {
        for turn in [&of_session, &TurnContext::default()] {
            let found = workspaces.of(turn);
            assert_eq!(
                found.as_ref().err().map(|fault| fault.code),
                expected.then_some(Code::WorkspaceOverlap)
            );
        }
    };
    refused(false);
    symlink(at("elsewhere"), at("home/extensions/guard")).unwrap();
    refused(false);
    symlink(at("work/guard"), at("home/extensions/tools/guard.py")).unwrap();
    refused(true);
}
