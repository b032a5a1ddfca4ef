//! Which folder is the home, where its socket is, and which workspace goes with it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use holdfast_contract::problem::{Code, Severity};

use crate::testing::{at, mode, nothing, scene, set_mode, write};
use crate::{Home, Settings};

fn environment(pairs: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
    move |name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
}

#[test]
fn the_home_is_found_in_order_and_never_in_the_current_folder() {
    let folder = tempfile::tempdir().unwrap();
    let current = folder.path();
    for planted in ["sandbox", "holdfast", ".local/share/holdfast", "relative/holdfast"] {
        fs::create_dir_all(current.join(planted).join("config")).unwrap();
        write(current.join(planted).join("config/policy.yaml"), "profile: full-auto\n");
    }
    type Case = (Option<&'static str>, &'static [(&'static str, &'static str)], Option<&'static str>);
    let cases: &[Case] = &[
        (Some("/asked"), &[("HOLDFAST_HOME", "/variable"), ("HOME", "/me")], Some("/asked")),
        (Some("./sandbox"), &[("HOME", "/me")], Some("./sandbox")),
        (Some(""), &[("HOME", "/me")], None),
        (None, &[("HOLDFAST_HOME", "/variable"), ("HOME", "/me")], Some("/variable")),
        (None, &[("HOLDFAST_HOME", "./sandbox"), ("HOME", "/me")], Some("./sandbox")),
        (None, &[("HOLDFAST_HOME", ""), ("HOME", "/me")], Some("/me/.local/share/holdfast")),
        (None, &[("XDG_DATA_HOME", "/data"), ("HOME", "/me")], Some("/data/holdfast")),
        (None, &[("XDG_DATA_HOME", "relative"), ("HOME", "/me")], Some("/me/.local/share/holdfast")),
        (None, &[("HOME", "/me")], Some("/me/.local/share/holdfast")),
        (None, &[("XDG_DATA_HOME", "relative"), ("HOME", ".")], None),
        (None, &[("HOME", "")], None),
        (None, &[], None),
    ];
    for (asked, pairs, expected) in cases {
        let home = Home::locate_from(current, asked.map(PathBuf::from), &environment(pairs));
        let Some(expected) = expected else {
            let problem = home.unwrap_err();
            assert_eq!(problem.code, Code::HomeUnavailable, "{asked:?} {pairs:?}");
            assert!(problem.help.contains("--home"), "{problem}");
            continue;
        };
        let expected = expected.strip_prefix("./").map_or(PathBuf::from(expected), |rest| current.join(rest));
        assert_eq!(home.unwrap().root(), expected, "{asked:?} {pairs:?}");
    }
}

#[test]
fn everything_has_its_place() {
    let home = at(Path::new("/h"));
    let places = [
        home.database(),
        home.control_socket(),
        home.settings_file(),
        home.policy_file(),
        home.env_file(),
        home.prompts(),
        home.extensions(),
        home.data(&"kv".into()),
        home.generations(),
        home.environments(),
    ];
    let expected = [
        "/h/holdfast.db",
        "/h/control.sock",
        "/h/config/settings.yaml",
        "/h/config/policy.yaml",
        "/h/.env",
        "/h/prompts",
        "/h/extensions",
        "/h/data/kv",
        "/h/generations",
        "/h/environments",
    ];
    assert_eq!(places.map(|place| place.display().to_string()), expected);
}

#[test]
fn a_deep_home_has_a_short_socket_that_others_find() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = folder.path().join("run");
    fs::create_dir(&runtime).unwrap();
    let deep = folder.path().join("d".repeat(60)).join("e".repeat(60));
    let with_runtime = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| runtime.clone().into_os_string());
    let home = Home::locate(Some(deep.clone()), &with_runtime).unwrap();
    home.ensure().unwrap();
    let owner = home.own().unwrap();
    let socket = home.control_socket();
    assert!(socket.starts_with(&runtime) && socket.as_os_str().len() <= 103, "{}", socket.display());
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    // Another process, without that variable, reads where it is.
    assert_eq!(at(&deep).control_socket(), socket);
    drop(owner);
    assert!(!socket.exists());

    set_mode(socket.parent().unwrap(), 0o755);
    let problem = home.own().unwrap_err().to_string();
    assert!(problem.contains("is not a folder of yours alone"), "{problem}");
    assert_eq!(home.owner(), None);
}

#[test]
fn the_workspace_is_beside_the_home() {
    let scene = scene();
    let (folder, home) = (scene.folder.path().canonicalize().unwrap(), &scene.home);
    for name in ["work", "home-work"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    symlink(&folder, folder.join("work/up")).unwrap();
    let named = |text: &str| Settings { workspace: Some(text.to_owned()), ..Settings::default() };
    let inside = home.root().join("data").display().to_string();
    let cases = [
        (Settings::default(), "work", Ok("work")),
        (Settings::default(), "home-work", Ok("home-work")),
        (named("work"), ".", Ok("work")),
        (named("../home-work"), "work", Ok("home-work")),
        (Settings::default(), ".", Err(Severity::Warning)),
        (Settings::default(), "home/data", Err(Severity::Warning)),
        (named("."), ".", Err(Severity::Error)),
        (named(&inside), "work", Err(Severity::Error)),
        (named("work/up"), ".", Err(Severity::Error)),
        (named("work/up/home"), ".", Err(Severity::Error)),
    ];
    for (settings, current, expected) in cases {
        let found = settings.workspace(home, &folder.join(current));
        match expected {
            Ok(name) => assert_eq!(found, Ok(folder.join(name))),
            Err(severity) => {
                let problem = found.unwrap_err();
                assert_eq!((problem.code, problem.severity), (Code::WorkspaceOverlap, severity), "{problem}");
            }
        }
    }
    let problem = named("nowhere").workspace(home, &folder).unwrap_err();
    assert!(problem.what.ends_with("nowhere is not a folder"), "{problem}");
}

#[test]
fn a_tilde_is_the_users_folder_and_the_problem_names_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let user = folder.path().canonicalize().unwrap();
    let variables = |name: &str| (name == "HOME").then(|| user.clone().into_os_string());
    let home = Home::locate_from(Path::new("/"), None, &variables).unwrap();
    home.ensure().unwrap();
    fs::create_dir(user.join("work")).unwrap();
    for (text, expected) in [("~/work", Some("work")), ("\"~\"", None)] {
        write(home.settings_file(), format!("# mine\nworkspace: {text}\n"));
        let found = Settings::load(&home).unwrap().workspace(&home, Path::new("/"));
        match expected {
            Some(name) => assert_eq!(found.unwrap(), user.join(name)),
            None => assert!(found.unwrap_err().to_string().contains("settings.yaml:2:12 (workspace)")),
        }
    }
    assert!(nothing("HOME").is_none());
}

/// Plants something below a folder, and says which home is asked for from which current folder.
struct Plant<'a> {
    folder: &'a Path,
}

impl Plant<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn home(&self, name: &str) {
        fs::create_dir_all(self.path(name).join("config")).unwrap();
        fs::create_dir_all(self.path(name).join("extensions")).unwrap();
        write(self.path(name).join("config/policy.yaml"), "profile: full-auto\n");
        write(self.path(name).join("config/settings.yaml"), "{}\n");
    }

    fn link(&self, name: &str, target: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        symlink(self.path(target), self.path(name)).unwrap();
    }
}

/// The result of a start: the home below the scene's folder, or the code.
type Outcome = Result<&'static str, Code>;

// Finding C2: names that a repository could plant in the current folder. None is taken, whatever the variables say of other things.
#[test]
fn no_name_in_the_current_folder_is_a_home() {
    let planted = [
        "sandbox",
        ".sandbox",
        "holdfast",
        ".holdfast",
        "Holdfast",
        "home",
        ".home",
        ".config/holdfast",
        ".local/share/holdfast",
        "share/holdfast",
        "data/holdfast",
        "relative/holdfast",
        "~",
        "~/.local/share/holdfast",
        "$HOME/.local/share/holdfast",
        "config",
        ".",
        "holdfast.db",
        ".holdfast-home",
        "HOLDFAST_HOME",
    ];
    let environments: [&[(&str, &str)]; 12] = [
        &[],
        &[("HOME", "")],
        &[("HOME", ".")],
        &[("HOME", "~")],
        &[("HOME", "relative")],
        &[("HOME", "./")],
        &[("XDG_DATA_HOME", "relative")],
        &[("XDG_DATA_HOME", ".")],
        &[("XDG_DATA_HOME", "share"), ("HOME", ".")],
        &[("HOLDFAST_HOME", ""), ("HOME", "")],
        &[("XDG_CONFIG_HOME", "/tmp"), ("PWD", "/tmp")],
        &[("HOLDFAST_CONFIG", "sandbox"), ("SANDBOX", "sandbox"), ("holdfast_home", "sandbox")],
    ];
    let folder = tempfile::tempdir().unwrap();
    let plant = Plant { folder: folder.path() };
    planted.iter().for_each(|name| plant.home(name));
    for pairs in environments {
        let problem = Home::locate_from(folder.path(), None, &environment(pairs)).unwrap_err();
        assert_eq!(problem.code, Code::HomeUnavailable, "{pairs:?}: {problem}");
        assert!(problem.help.contains("--home"), "{problem}");
    }
    // With a user's folder it is the home, whatever is planted, and whatever the current folder is called.
    for current in planted {
        let found = Home::locate_from(&folder.path().join(current), None, &environment(&[("HOME", "/me")]));
        assert_eq!(found.unwrap().root(), Path::new("/me/.local/share/holdfast"), "{current}");
    }
}

// Finding C2: homes that the user names, and what is wrong with some of them. Each bad one has a code.
#[test]
fn a_named_home_is_checked_before_it_is_used() {
    type Prepare = fn(&Plant<'_>);
    let refused: Outcome = Err(Code::HomeUnavailable);
    let cases: &[(&str, &str, Prepare, Outcome)] = &[
        ("a home", "good", |it| it.home("good"), Ok("good")),
        ("one that is to be made", "new", |_| {}, Ok("new")),
        ("one in folders that are to be made", "a/b/c", |_| {}, Ok("a/b/c")),
        ("a relative name", "./good", |it| it.home("good"), Ok("good")),
        (
            "a way up and down again",
            "x/../good",
            |it| {
                it.home("good");
                it.home("x");
            },
            Ok("good"),
        ),
        ("a slash at the end", "good/", |it| it.home("good"), Ok("good")),
        ("two slashes", "x//good", |it| it.home("x/good"), Ok("x/good")),
        ("a space", "my home", |it| it.home("my home"), Ok("my home")),
        ("letters of any script", "дом", |it| it.home("дом"), Ok("дом")),
        ("a line break", "two\nlines", |it| it.home("two\nlines"), Ok("two\nlines")),
        ("a tilde, which only a shell expands", "~", |it| it.home("~"), Ok("~")),
        (
            "a link to a home of ours",
            "link",
            |it| {
                it.home("good");
                it.link("link", "good");
            },
            Ok("good"),
        ),
        (
            "a link to a link",
            "two",
            |it| {
                it.home("good");
                it.link("one", "good");
                it.link("two", "one");
            },
            Ok("good"),
        ),
        (
            "only for us",
            "good",
            |it| {
                it.home("good");
                set_mode(&it.path("good"), 0o700);
            },
            Ok("good"),
        ),
        (
            "others may read",
            "good",
            |it| {
                it.home("good");
                set_mode(&it.path("good"), 0o755);
            },
            Ok("good"),
        ),
        (
            "our group may write",
            "good",
            |it| {
                it.home("good");
                set_mode(&it.path("good"), 0o770);
            },
            Ok("good"),
        ),
        ("empty", "", |_| {}, refused),
        ("the root of the disk", "/", |_| {}, refused),
        ("the root in other words", "/usr/..", |_| {}, refused),
        ("the root with slashes", "//", |_| {}, refused),
        ("a file", "file", |it| write(it.path("file"), "x"), refused),
        ("an empty file", "file", |it| write(it.path("file"), ""), refused),
        ("below a file", "file/home", |it| write(it.path("file"), "x"), refused),
        ("a device", "/dev/null", |_| {}, refused),
        ("a device without end", "/dev/zero", |_| {}, refused),
        (
            "a link to a file",
            "link",
            |it| {
                write(it.path("file"), "x");
                it.link("link", "file");
            },
            refused,
        ),
        ("a link to a device", "link", |it| symlink("/dev/null", it.path("link")).unwrap(), refused),
        ("a link that leads nowhere", "link", |it| it.link("link", "nowhere"), refused),
        ("a link to itself", "link", |it| it.link("link", "link"), refused),
        (
            "links in a circle",
            "one",
            |it| {
                it.link("one", "two");
                it.link("two", "one");
            },
            refused,
        ),
        (
            "every user may write",
            "bad",
            |it| {
                it.home("bad");
                set_mode(&it.path("bad"), 0o777);
            },
            refused,
        ),
        (
            "every user may write, and it is sticky",
            "bad",
            |it| {
                it.home("bad");
                set_mode(&it.path("bad"), 0o1777);
            },
            refused,
        ),
        (
            "every user may write and not read",
            "bad",
            |it| {
                it.home("bad");
                set_mode(&it.path("bad"), 0o702);
            },
            refused,
        ),
        (
            "a link to what every user may write",
            "link",
            |it| {
                it.home("bad");
                set_mode(&it.path("bad"), 0o777);
                it.link("link", "bad");
            },
            refused,
        ),
        (
            "every user may write its config",
            "bad",
            |it| {
                it.home("bad");
                set_mode(&it.path("bad/config"), 0o777);
            },
            refused,
        ),
        (
            "every user may write its policy",
            "bad",
            |it| {
                it.home("bad");
                set_mode(&it.path("bad/config/policy.yaml"), 0o666);
            },
            refused,
        ),
        (
            "every user may write its settings",
            "bad",
            |it| {
                it.home("bad");
                set_mode(&it.path("bad/config/settings.yaml"), 0o622);
            },
            refused,
        ),
        (
            "every user may write its extensions",
            "bad",
            |it| {
                it.home("bad");
                set_mode(&it.path("bad/extensions"), 0o777);
            },
            refused,
        ),
        (
            "every user may write its keys",
            "bad",
            |it| {
                it.home("bad");
                write(it.path("bad/.env"), "A=1\n");
                set_mode(&it.path("bad/.env"), 0o602);
            },
            refused,
        ),
        (
            "every user may write its prompts",
            "bad",
            |it| {
                it.home("bad");
                fs::create_dir(it.path("bad/prompts")).unwrap();
                set_mode(&it.path("bad/prompts"), 0o777);
            },
            refused,
        ),
        ("a config that leads nowhere", "bad", |it| it.link("bad/config", "nowhere"), refused),
        ("a policy that leads nowhere", "bad", |it| it.link("bad/config/policy.yaml", "nowhere"), refused),
        ("extensions that lead nowhere", "bad", |it| it.link("bad/extensions", "nowhere"), refused),
        ("a config that is a link to itself", "bad", |it| it.link("bad/config", "bad/config"), refused),
        (
            "extensions that are a link to themselves, which the loader reports",
            "good",
            |it| it.link("good/extensions", "good/extensions"),
            Ok("good"),
        ),
        (
            "a config that is linked to what every user may write",
            "bad",
            |it| {
                fs::create_dir(it.path("shared")).unwrap();
                set_mode(&it.path("shared"), 0o777);
                it.link("bad/config", "shared");
            },
            refused,
        ),
        (
            "a policy that is linked to what every user may write",
            "bad",
            |it| {
                write(it.path("shared"), "profile: full-auto\n");
                set_mode(&it.path("shared"), 0o666);
                it.link("bad/config/policy.yaml", "shared");
            },
            refused,
        ),
        (
            "a config that is linked to a folder of ours",
            "good",
            |it| {
                fs::create_dir(it.path("dotfiles")).unwrap();
                it.link("good/config", "dotfiles");
            },
            Ok("good"),
        ),
    ];
    for (what, asked, prepare, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let (folder, plant) = (folder.path().canonicalize().unwrap(), Plant { folder: folder.path() });
        prepare(&plant);
        // Named as an argument, and as a variable.
        for by_argument in [true, false] {
            let name = OsString::from(*asked);
            let variables =
                |variable: &str| (variable == "HOLDFAST_HOME" && !by_argument).then(|| name.clone());
            let argument = by_argument.then(|| PathBuf::from(asked));
            let home = Home::locate_from(&folder, argument, &variables);
            let outcome = home.and_then(|home| home.check().map(|()| home.canonical()));
            match (outcome, expected) {
                (Ok(found), Ok(name)) => assert_eq!(found, folder.join(name), "{what}"),
                (Err(problem), Err(code)) => {
                    assert_eq!(problem.code, *code, "{what}: {problem}");
                    assert!(!problem.help.is_empty(), "{what}: {problem}");
                }
                (outcome, _) => panic!("{what}: {outcome:?}"),
            }
        }
    }
}

// Finding C2: a home of another user. Only root can make one, so that the system's own folders stand for it elsewhere.
#[test]
fn a_home_of_another_user_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plant = Plant { folder: folder.path() };
    plant.home("theirs");
    let changed = std::os::unix::fs::chown(plant.path("theirs/config/policy.yaml"), Some(12_345), None);
    let other = match changed {
        Ok(()) => plant.path("theirs"),
        Err(_) => PathBuf::from("/usr"),
    };
    let problem = at(&other).check().unwrap_err();
    assert_eq!(problem.code, Code::HomeUnavailable, "{problem}");
    assert!(problem.what.contains("belongs to another user"), "{problem}");
}

// Finding C2: what decides in a home and is linked from the workspace could be written by an agent.
#[test]
fn no_part_of_a_home_that_decides_lies_in_the_workspace() {
    type Prepare = fn(&Plant<'_>);
    let cases: &[(&str, Prepare, &str, bool)] = &[
        ("beside it", |_| {}, "work", true),
        ("the home in the workspace", |_| {}, ".", false),
        ("the workspace is the home", |_| {}, "home", false),
        ("the workspace in the home", |_| {}, "home/data", false),
        ("a link to the home", |it| it.link("work/up", "home"), "work/up", false),
        ("a link to what is in the home", |it| it.link("work/up", "home/data"), "work/up", false),
        ("a name that begins like it", |it| fs::create_dir(it.path("home-2")).unwrap(), "home-2", true),
        ("ways up and down", |_| {}, "work/../home", false),
        (
            "the policy is linked from it",
            |it| {
                write(it.path("work/policy.yaml"), "profile: full-auto\n");
                it.link("home/config/policy.yaml", "work/policy.yaml");
            },
            "work",
            false,
        ),
        (
            "the settings are linked from it",
            |it| {
                write(it.path("work/settings.yaml"), "{}\n");
                it.link("home/config/settings.yaml", "work/settings.yaml");
            },
            "work",
            false,
        ),
        (
            "the extensions are linked from it",
            |it| {
                fs::create_dir(it.path("work/extensions")).unwrap();
                fs::remove_dir_all(it.path("home/extensions")).unwrap();
                it.link("home/extensions", "work/extensions");
            },
            "work",
            false,
        ),
        (
            "the prompts are linked from it",
            |it| {
                fs::create_dir(it.path("work/prompts")).unwrap();
                fs::remove_dir_all(it.path("home/prompts")).unwrap();
                it.link("home/prompts", "work/prompts");
            },
            "work",
            false,
        ),
        (
            "an extension is linked from it",
            |it| {
                fs::create_dir(it.path("work/guard")).unwrap();
                it.link("home/extensions/guard", "work/guard");
            },
            "work",
            false,
        ),
        (
            "an extension is linked from nothing in it",
            |it| it.link("home/extensions/guard", "work/later"),
            "work",
            false,
        ),
        (
            "an extension is linked through it",
            |it| {
                fs::create_dir(it.path("elsewhere")).unwrap();
                it.link("work/next", "elsewhere");
                it.link("home/extensions/guard", "work/next");
            },
            "work",
            false,
        ),
        (
            "an extension is linked through a folder of it",
            |it| {
                fs::create_dir_all(it.path("elsewhere/guard")).unwrap();
                it.link("work/next", "elsewhere");
                it.link("home/extensions/guard", "work/next/guard");
            },
            "work",
            false,
        ),
        (
            "an extension is linked from elsewhere",
            |it| {
                fs::create_dir(it.path("elsewhere")).unwrap();
                it.link("home/extensions/guard", "elsewhere");
            },
            "work",
            true,
        ),
        (
            "a tool is linked from it",
            |it| {
                write(it.path("work/x.py"), "");
                it.link("home/extensions/tools/x.py", "work/x.py");
            },
            "work",
            false,
        ),
        (
            "the channels are linked from it",
            |it| {
                fs::create_dir(it.path("work/channels")).unwrap();
                fs::remove_dir_all(it.path("home/extensions/channels")).unwrap();
                it.link("home/extensions/channels", "work/channels");
            },
            "work",
            false,
        ),
        (
            "a prompt is linked from it",
            |it| {
                write(it.path("work/text"), "");
                let prompt = "home/prompts/linked.jinja2";
                it.link(prompt, "work/text");
            },
            "work",
            false,
        ),
        ("the log is linked from it", |it| it.link("home/holdfast.db", "work/log"), "work", false),
        (
            "the keys are linked from it",
            |it| {
                write(it.path("work/keys"), "A=1\n");
                it.link("home/.env", "work/keys");
            },
            "work",
            false,
        ),
        (
            "the config is linked from elsewhere",
            |it| {
                fs::create_dir(it.path("dotfiles")).unwrap();
                fs::remove_dir_all(it.path("home/config")).unwrap();
                it.link("home/config", "dotfiles");
            },
            "work",
            true,
        ),
        (
            "the config is linked, and the workspace is in it",
            |it| {
                fs::create_dir_all(it.path("dotfiles/work")).unwrap();
                fs::remove_dir_all(it.path("home/config")).unwrap();
                it.link("home/config", "dotfiles");
            },
            "dotfiles/work",
            false,
        ),
    ];
    for (what, prepare, current, expected) in cases {
        let scene = scene();
        let folder = scene.folder.path().canonicalize().unwrap();
        fs::create_dir(folder.join("work")).unwrap();
        prepare(&Plant { folder: &folder });
        let found = Settings::default().workspace(&scene.home, &folder.join(current));
        assert_eq!(found.is_ok(), *expected, "{what}: {found:?}");
        if let Err(problem) = found {
            assert_eq!(problem.code, Code::WorkspaceOverlap, "{what}: {problem}");
        }
    }
}
