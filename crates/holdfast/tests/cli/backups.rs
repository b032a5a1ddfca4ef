//! Backups of a home in use: what an extension does to its files meanwhile, where a backup may be written, and what is left of one that
//! failed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::shared::{Scene, finish};

/// Waits until a file is read for the first time, and appends entries of a tar archive to it.
const APPENDS: &str = r#"
import ctypes, io, os, sys, tarfile
path = sys.argv[1]
planted = io.BytesIO()
with tarfile.open(fileobj=planted, mode="w", format=tarfile.GNU_FORMAT) as tar:
    for name, text in [("config/policy.yaml", b"profile: full-auto\n"), ("extensions/tools/planted.py", b"x = 1\n")]:
        entry = tarfile.TarInfo(name)
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
libc = ctypes.CDLL(None, use_errno=True)
watch = libc.inotify_init1(0)
assert libc.inotify_add_watch(watch, path.encode(), 1) >= 0
print("ready", flush=True)
os.read(watch, 4096)
with open(path, "ab") as file:
    file.write(planted.getvalue())
print("appended", flush=True)
"#;

fn home() -> Scene {
    let scene = Scene::new();
    scene.run(&["init"]).ok();
    scene.run(&["run", "hello"]).ok();
    scene.policy("profile: safe\n");
    scene
}

#[test]
fn an_extension_that_appends_to_its_file_during_a_backup_plants_nothing() {
    let scene = home();
    let data = scene.home().join("data/notes");
    fs::create_dir_all(&data).unwrap();
    let large = data.join("large");
    fs::write(&large, vec![7; 64 << 20]).unwrap();
    let mut appends = Command::new("python3");
    let mut appends = appends.args(["-c", APPENDS]).arg(&large).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(appends.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "ready");
    let archive = scene.root().join("backup.tar.zst");
    scene.run(&["backup", archive.to_str().unwrap()]).ok();
    assert_eq!(said.next().unwrap().unwrap(), "appended");
    appends.wait().unwrap();

    let restored = scene.root().join("restored");
    finish(scene.command_at(&restored, &["restore", archive.to_str().unwrap()]).spawn().unwrap()).ok();
    assert_eq!(fs::read_to_string(restored.join("config/policy.yaml")).unwrap(), "profile: safe\n");
    assert!(!restored.join("extensions/tools/planted.py").exists());
    let copied = fs::read(restored.join("data/notes/large")).unwrap();
    assert!(copied.len() >= 64 << 20 && copied[..64 << 20].iter().all(|byte| *byte == 7));
    finish(scene.command_at(&restored, &["log", "verify"]).spawn().unwrap()).ok();
}

/// Every path in a folder.
fn paths(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
            found.insert(entry.path());
        }
    }
    found
}

#[test]
fn a_backup_inside_the_home_is_refused_by_whatever_path() {
    let scene = home();
    std::os::unix::fs::symlink(scene.home(), scene.work().join("link")).unwrap();
    std::os::unix::fs::symlink(scene.home().join("data"), scene.work().join("data")).unwrap();
    std::os::unix::fs::symlink(scene.home(), scene.root().join("alias")).unwrap();
    let absolute = |name: &str| scene.home().join(name).display().to_string();
    let before = paths(&scene.home());
    for target in [
        absolute("copy"),
        absolute("data/copy"),
        absolute("data/../copy"),
        absolute("data/.holdfast-backup"),
        "../home/copy".to_owned(),
        "../work/../home/data/copy".to_owned(),
        "link/copy".to_owned(),
        "link/../home/copy".to_owned(),
        "data/copy".to_owned(),
        format!("{}/outside/../home/copy", scene.root().display()),
    ] {
        let refused = scene.run(&["backup", &target]).fails(2, "HF-2011");
        assert!(refused.err.contains("outside of the home"), "{target}: {refused:#?}");
        let by_alias = scene.command_at(&scene.root().join("alias"), &["backup", &target]);
        finish({ by_alias }.spawn().unwrap()).fails(2, "HF-2011");
    }
    let mut inside = scene.command(&["backup", "copy"]);
    finish(inside.current_dir(scene.home().join("data")).spawn().unwrap()).fails(2, "HF-2011");
    assert_eq!(paths(&scene.home()), before, "nothing was written");
    // A link in the home that leads out of it is no way into it.
    std::os::unix::fs::symlink(scene.outside(), scene.home().join("out")).unwrap();
    scene.run(&["backup", &absolute("out/copy")]).ok();
}

#[test]
fn a_backup_that_fails_or_is_killed_leaves_nothing_behind() {
    let scene = home();
    fs::create_dir_all(scene.home().join("data/notes")).unwrap();
    // What does not compress, so that the archive becomes as large.
    let mut noise = fs::File::open("/dev/urandom").unwrap();
    let mut large = fs::File::create(scene.home().join("data/notes/large")).unwrap();
    std::io::copy(&mut std::io::Read::take(&mut noise, 32 << 20), &mut large).unwrap();
    let folder = scene.outside();
    let target = folder.join("copy");
    // The system ends the process in the middle of the archive: no file may have more than 16 MiB.
    let whole = scene.command(&["backup", target.to_str().unwrap()]);
    let mut limited = Command::new("/bin/sh");
    limited
        .args(["-c", "ulimit -f 32768; exec \"$@\"", "sh"])
        .arg(whole.get_program())
        .args(whole.get_args());
    limited.current_dir(scene.work()).env_clear().env("HOME", scene.root());
    limited.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let killed = finish(limited.spawn().unwrap());
    assert_ne!(killed.code, Some(0), "{killed:#?}");
    assert_eq!(paths(&folder), BTreeSet::new(), "{killed:#?}");

    scene.run(&["backup", target.to_str().unwrap()]).ok();
    scene.run(&["backup", target.to_str().unwrap()]).fails(2, "HF-2001");
    scene.run(&["backup", folder.join("missing/copy").to_str().unwrap()]).fails(2, "HF-2001");
    assert_eq!(paths(&folder), BTreeSet::from([target]));
}

/// Makes a backup with an entry of each kind that is refused.
const FORGED: &str = r#"
import io, os, sys, tarfile
def write(name, entries):
    with tarfile.open(os.path.join(sys.argv[1], name), "w", format=tarfile.GNU_FORMAT) as tar:
        for path, kind in entries:
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname, entry.size = kind, "/etc", 1 if kind == tarfile.REGTYPE else 0
            tar.addfile(entry, io.BytesIO(b"x") if entry.size else None)
write("twice", [("config/policy.yaml", tarfile.REGTYPE), ("config/policy.yaml", tarfile.REGTYPE)])
write("absolute", [("/tmp/planted-by-a-backup", tarfile.REGTYPE)])
write("above", [("../planted", tarfile.REGTYPE)])
write("symbolic", [("data", tarfile.SYMTYPE), ("data/x", tarfile.REGTYPE)])
write("hard", [("data", tarfile.LNKTYPE)])
"#;

#[test]
fn a_backup_that_is_none_is_refused_and_changes_nothing() {
    let scene = home();
    let made = Command::new("python3").args(["-c", FORGED]).arg(scene.outside()).status();
    assert!(made.unwrap().success());
    for name in ["twice", "absolute", "above", "symbolic", "hard"] {
        let plain = scene.outside().join(name);
        // A tar archive in a frame of zstd that is not compressed.
        let forged = scene.outside().join(format!("{name}.tar.zst"));
        fs::write(&forged, stored(&fs::read(&plain).unwrap())).unwrap();
        let before = paths(scene.root());
        let elsewhere = scene.root().join("elsewhere");
        let restore = &["restore", forged.to_str().unwrap()];
        finish(scene.command_at(&elsewhere, restore).spawn().unwrap()).fails(2, "HF-2012");
        scene.run(&["restore", "--force", forged.to_str().unwrap()]).fails(2, "HF-2012");
        assert_eq!(paths(scene.root()), before, "{name}");
    }
}

/// A frame of zstd with raw blocks.
fn stored(bytes: &[u8]) -> Vec<u8> {
    // Magic, no single segment and no size, a window of 128 KiB.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    let blocks: Vec<&[u8]> = bytes.chunks(64 << 10).collect();
    for (at, block) in blocks.iter().enumerate() {
        let last = u32::from(at + 1 == blocks.len());
        let header = last | u32::try_from(block.len()).unwrap() << 3;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.extend(*block);
    }
    frame
}
