//! Backups of what is not a plain file: links, special files and files with holes. What decides is never left out without a word.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shared::{Ran, Scene, finish};
use holdfast_testkit::wasm::{Gates, gate};

const WRITE: [&str; 3] = ["call", "file_write", r#"{ "path": "effect.txt", "text": "done" }"#];

fn backup(scene: &Scene) -> (PathBuf, Ran) {
    let archive = scene.root().join("backup.tar.zst");
    drop(fs::remove_file(&archive));
    let made = scene.run(&["backup", archive.to_str().unwrap()]);
    (archive, made)
}

fn restore(scene: &Scene, name: &str, archive: &Path) -> (PathBuf, Ran) {
    let restored = scene.root().join(name);
    let back = finish(scene.command_at(&restored, &["restore", archive.to_str().unwrap()]).spawn().unwrap());
    (restored, back)
}

fn on(scene: &Scene, home: &Path, arguments: &[&str]) -> Ran {
    finish(scene.command_at(home, arguments).spawn().unwrap())
}

/// A home in which everything that decides is a link to another place, with a gate that denies every call.
fn linked() -> (Scene, PathBuf) {
    let scene = Scene::new();
    scene.run(&["init"]).ok();
    let away = scene.root().join("away");
    let guard = away.join("guard");
    fs::create_dir_all(guard.join(".git")).unwrap();
    fs::write(guard.join("guard.wasm"), gate(&Gates::AllowsTimes(0), false)).unwrap();
    fs::write(guard.join("manifest.yaml"), "id: guard\nname: Guard\nentrypoint: guard.wasm\n").unwrap();
    fs::write(guard.join(".git/config"), "[core]\n").unwrap();
    symlink(&guard, scene.home().join("extensions/guard")).unwrap();
    let tools = scene.home().join("extensions/tools");
    fs::create_dir_all(&tools).unwrap();
    fs::write(away.join("greet.py"), "def run():\n    'x'\n    return 'hello'\n").unwrap();
    symlink(away.join("greet.py"), tools.join("greet.py")).unwrap();
    fs::rename(scene.home().join("config"), away.join("config")).unwrap();
    fs::write(away.join("policy.yaml"), "profile: safe\n").unwrap();
    drop(fs::remove_file(away.join("config/policy.yaml")));
    symlink(away.join("policy.yaml"), away.join("config/policy.yaml")).unwrap();
    symlink(away.join("config"), scene.home().join("config")).unwrap();
    (scene, away)
}

// Finding N5: links were passed over, so the restored home had the default policy and no gate.
#[test]
fn what_decides_and_is_linked_is_in_a_backup() {
    let (scene, away) = linked();
    assert_ne!(scene.run(&WRITE).code, Some(0), "the gate is known from here on");
    let (archive, made) = backup(&scene);
    made.ok();
    fs::rename(&away, scene.root().join("elsewhere")).unwrap();
    let (restored, back) = restore(&scene, "restored", &archive);
    back.ok();
    assert_eq!(fs::read_to_string(restored.join("config/policy.yaml")).unwrap(), "profile: safe\n");
    for path in ["config", "config/policy.yaml", "extensions/guard", "extensions/tools/greet.py"] {
        let found = restored.join(path).symlink_metadata().unwrap();
        assert!(!found.is_symlink(), "{path}");
    }
    assert!(restored.join("extensions/guard/guard.wasm").exists());
    assert!(!restored.join("extensions/guard/.git").exists(), "what the loader passes over stays behind");
    fs::write(restored.join("config/policy.yaml"), "profile: full-auto\n").unwrap();
    let denied = on(&scene, &restored, &WRITE);
    assert_ne!(denied.code, Some(0), "the gate judges: {denied:#?}");
    assert!(!scene.work().join("effect.txt").exists());
}

// Finding N5: what could not be copied does not count as removed.
#[test]
fn a_home_that_is_restored_without_a_gate_refuses() {
    let (scene, away) = linked();
    fs::write(away.join("policy.yaml"), "profile: full-auto\n").unwrap();
    assert_ne!(scene.run(&WRITE).code, Some(0), "the gate is known from here on");
    // The gate's folder is gone when the backup is made.
    fs::rename(away.join("guard"), away.join("moved")).unwrap();
    let (archive, made) = backup(&scene);
    assert_eq!(made.code, Some(1), "{made:#?}");
    assert!(
        made.err
            .contains("warning[HF-2014]: extensions/guard was not copied: it is a link that leads nowhere")
    );
    let (restored, back) = restore(&scene, "without-gate", &archive);
    assert!(back.ok().err.contains("the backup does not have extensions/guard"));
    let denied = on(&scene, &restored, &WRITE);
    assert_ne!(denied.code, Some(0), "{denied:#?}");
    assert!(!scene.work().join("effect.txt").exists(), "it ran: {denied:#?}");

    // The same for the policy, which a home is not backed up without: what stands in its place cannot be read as a policy.
    let marked = fs::read(restored.join("extensions/guard")).unwrap();
    fs::write(restored.join("config/policy.yaml"), marked).unwrap();
    let refused = on(&scene, &restored, &["call", "file_list", "{}"]);
    assert!(refused.code != Some(0) && refused.err.contains("policy.yaml"), "{refused:#?}");
}

#[test]
fn other_links_and_special_files_are_named_and_not_followed() {
    let scene = Scene::new();
    scene.run(&["run", "hello"]).ok();
    fs::create_dir_all(scene.home().join("data/notes")).unwrap();
    fs::create_dir_all(scene.home().join("extensions/one/inner")).unwrap();
    fs::write(
        scene.home().join("extensions/one/manifest.yaml"),
        "id: one\nname: x\nagent: { instructions: x }\n",
    )
    .unwrap();
    let secret = scene.outside().join("secret");
    fs::write(&secret, "of the user").unwrap();
    for link in ["data/notes/link", "data/whole", "mine", "extensions/one/link", "extensions/one/inner/link"]
    {
        symlink(&secret, scene.home().join(link)).unwrap();
    }
    symlink("/", scene.home().join("extensions/everything")).unwrap();
    fs::create_dir_all(scene.home().join("prompts")).unwrap();
    let pipe = Command::new("mkfifo").arg(scene.home().join("prompts/pipe")).status();
    assert!(pipe.unwrap().success());
    let (archive, made) = backup(&scene);
    assert_eq!(made.code, Some(1), "{made:#?}");
    for name in ["data/notes/link", "data/whole", "mine", "extensions/everything", "prompts/pipe"] {
        assert!(
            made.err.contains(&format!("warning[HF-2014]: {name} was not copied: ")),
            "{name}: {made:#?}"
        );
    }
    let (restored, back) = restore(&scene, "restored", &archive);
    back.ok();
    for name in ["data/notes/link", "data/whole", "mine", "extensions/one/link", "extensions/one/inner/link"]
    {
        assert!(restored.join(name).symlink_metadata().is_err(), "{name}");
    }
    assert!(restored.join("extensions/one/manifest.yaml").exists());
}

// Finding N4: what an extension can write at no cost fills no disk.
#[test]
fn sparse_files_do_not_fill_the_disk() {
    let scene = Scene::new();
    scene.run(&["run", "hello"]).ok();
    let data = scene.home().join("data/notes");
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join("kept"), "text").unwrap();
    for number in 0..20 {
        File::create(data.join(format!("sparse-{number}"))).unwrap().set_len(1 << 30).unwrap();
    }
    // With something in it, and zeros that are on the disk.
    let mixed = [vec![7; 5000], vec![0; 300_000], vec![8; 100], vec![0; 9000]].concat();
    fs::write(data.join("mixed"), &mixed).unwrap();
    let (archive, made) = backup(&scene);
    assert_eq!(made.code, Some(1), "{made:#?}");
    let skipped =
        made.err.lines().filter(|line| line.contains("HF-2014") && line.contains("it is sparse")).count();
    assert!((19..=20).contains(&skipped), "{made:#?}");
    let (restored, back) = restore(&scene, "restored", &archive);
    back.ok();
    let restored = restored.join("data/notes");
    assert_eq!(fs::read(restored.join("mixed")).unwrap(), mixed);
    assert_eq!(fs::read_to_string(restored.join("kept")).unwrap(), "text");
    let taken: u64 =
        fs::read_dir(&restored).unwrap().map(|it| it.unwrap().metadata().unwrap().blocks() * 512).sum();
    assert!(taken < 4 << 20, "{taken} bytes on the disk");
}
