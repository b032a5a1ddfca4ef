//! Backups of a home in use: what an extension does to its files meanwhile, where a backup may be written, and what is left of one that
//! failed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::shared::{Owner, Scene, bounded, finish};
use serde_json::json;

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
    // A link in the home that leads out of it gives no access to it.
    std::os::unix::fs::symlink(scene.outside(), scene.home().join("out")).unwrap();
    // The link itself is named as not copied.
    let made = scene.run(&["backup", &absolute("out/copy")]);
    assert!(made.code == Some(1) && made.err.contains("warning[HF-2014]: out was not copied"), "{made:#?}");
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

/// The names in an archive, in their order.
fn members(archive: &Path) -> Vec<String> {
    let decoder = zstd::Decoder::new(fs::File::open(archive).unwrap()).unwrap();
    let mut archive = tar::Archive::new(decoder);
    archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect()
}

// Finding D11: a ledger of an extension never has more than the log. Finding B12: caches are left out.
#[test]
fn a_backup_copies_the_log_after_the_data_and_leaves_the_caches_out() {
    let scene = home();
    for name in ["data/zulu/ledger", "generations/compiled", "environments/numpy/x.py", "zebra"] {
        let path = scene.home().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "text").unwrap();
    }
    let archive = scene.root().join("backup.tar.zst");
    scene.run(&["backup", archive.to_str().unwrap()]).ok();
    let members = members(&archive);
    let [.., database, manifest] = members.as_slice() else { panic!("{members:?}") };
    assert_eq!((database.as_str(), manifest.as_str()), ("holdfast.db", "holdfast-backup.json"));
    assert!(members.contains(&"data/zulu/ledger".to_owned()) && members.contains(&"zebra".to_owned()));
    let left_out = |name: &String| name.starts_with("generations") || name.starts_with("environments");
    assert!(!members.iter().any(left_out), "{members:?}");

    // Finding B12: the modes of home.md.
    let restored = scene.root().join("restored");
    finish(scene.command_at(&restored, &["restore", archive.to_str().unwrap()]).spawn().unwrap()).ok();
    for folder in ["", "data", "data/zulu", "config"] {
        let mode = fs::metadata(restored.join(folder)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{folder}");
    }
    assert!(!restored.join("holdfast-backup.json").exists());
    finish(scene.command_at(&restored, &["run", "hello again"]).spawn().unwrap()).ok();
    finish(scene.command_at(&restored, &["log", "verify"]).spawn().unwrap()).ok();
}

// Finding L8.
#[test]
fn a_file_that_cannot_be_read_is_named_and_the_rest_is_copied() {
    let scene = home();
    let data = scene.home().join("data/notes");
    fs::create_dir_all(data.join("closed")).unwrap();
    for name in ["locked", "open", "closed/inner"] {
        fs::write(data.join(name), name).unwrap();
    }
    for name in ["locked", "closed"] {
        fs::set_permissions(data.join(name), fs::Permissions::from_mode(0o000)).unwrap();
    }
    let archive = scene.root().join("backup.tar.zst");
    let made = finish(bounded(&scene.command(&["backup", archive.to_str().unwrap()])).spawn().unwrap());
    assert_eq!(made.code, Some(1), "{made:#?}");
    for name in ["data/notes/locked", "data/notes/closed"] {
        assert!(made.err.contains(&format!("warning[HF-2014]: {name} was not copied: ")), "{made:#?}");
    }
    let restored = scene.root().join("restored");
    let back = finish(scene.command_at(&restored, &["restore", archive.to_str().unwrap()]).spawn().unwrap());
    assert!(back.clone().ok().err.contains("warning[HF-2014]: the backup does not have data/notes/locked"));
    assert_eq!(fs::read_to_string(restored.join("data/notes/open")).unwrap(), "open");
    assert!(!restored.join("data/notes/locked").exists());
    fs::set_permissions(data.join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
}

// Findings D11 and B12: whatever happens to an archive, nothing of it is put in place.
#[test]
fn a_damaged_backup_is_refused_and_changes_nothing() {
    let scene = home();
    fs::create_dir_all(scene.home().join("data/notes")).unwrap();
    fs::write(scene.home().join("data/notes/first"), "first").unwrap();
    let archive = scene.outside().join("backup.tar.zst");
    scene.run(&["backup", archive.to_str().unwrap()]).ok();
    let whole = fs::read(&archive).unwrap();
    let mut damaged: Vec<(String, Vec<u8>)> = Vec::new();
    for part in 0..24 {
        let mut bytes = whole.clone();
        let at = (bytes.len() - 1) * part / 23;
        bytes[at] ^= 0x10;
        damaged.push((format!("byte {at}"), bytes));
    }
    for part in [0, 1, 3, 8, 15, 16] {
        let at = whole.len() * part / 17;
        damaged.push((format!("cut at {at}"), whole[..at].to_vec()));
    }
    damaged.push(("one byte short".to_owned(), whole[..whole.len() - 1].to_vec()));
    damaged.push(("twice".to_owned(), [whole.as_slice(), &whole].concat()));
    damaged.push(("more".to_owned(), [whole.as_slice(), b"more"].concat()));
    damaged.push(("not compressed".to_owned(), zstd::decode_all(whole.as_slice()).unwrap()));
    let target = scene.outside().join("damaged");
    let elsewhere = scene.root().join("elsewhere");
    for (how, bytes) in damaged {
        fs::write(&target, bytes).unwrap();
        let before = paths(scene.root());
        let restore = scene.command_at(&elsewhere, &["restore", target.to_str().unwrap()]);
        let refused = finish({ restore }.spawn().unwrap());
        let code = ["HF-2012", "HF-2013"].into_iter().find(|code| refused.err.contains(code));
        refused.fails(2, code.unwrap_or_else(|| panic!("{how} is restored")));
        scene.run(&["restore", "--force", target.to_str().unwrap()]).fails(2, code.unwrap());
        assert_eq!(paths(scene.root()), before, "{how}");
    }
}

/// An entry of an archive.
#[derive(Clone)]
struct Entry {
    name: String,
    mode: u32,
    content: Vec<u8>,
}

/// What is in an archive, in its order.
fn entries(archive: &[u8]) -> Vec<Entry> {
    let mut archive = tar::Archive::new(zstd::Decoder::new(archive).unwrap());
    let read = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
        let name = entry.path().unwrap().display().to_string();
        Entry { name, mode: entry.header().mode().unwrap(), content }
    };
    archive.entries().unwrap().map(read).collect()
}

/// An archive of these entries.
fn packed(entries: &[Entry]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for Entry { name, mode, content } in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(*mode);
        builder.append_data(&mut header, name, content.as_slice()).unwrap();
    }
    zstd::encode_all(builder.into_inner().unwrap().as_slice(), 0).unwrap()
}

// Issue 19: archives that were put together from parts of others.
#[test]
fn swapped_and_spliced_backups_are_refused_and_change_nothing() {
    let (first, second) = (home(), home());
    second.run(&["run", "something else"]).ok();
    second.policy("profile: full-auto\n");
    let made = |scene: &Scene| {
        let archive = scene.outside().join("backup.tar.zst");
        scene.run(&["backup", archive.to_str().unwrap()]).ok();
        fs::read(archive).unwrap()
    };
    let (one, two) = (made(&first), made(&second));
    let (of_one, of_two) = (entries(&one), entries(&two));
    let at = |name: &str| of_one.iter().position(|found| found.name == name).unwrap();
    let (database, manifest, policy) =
        (at("holdfast.db"), at("holdfast-backup.json"), at("config/policy.yaml"));
    let from_two = |name: &str| of_two.iter().find(|found| found.name == name).unwrap().content.clone();
    let changed = |change: &dyn Fn(&mut Vec<Entry>)| {
        let mut entries = of_one.clone();
        change(&mut entries);
        packed(&entries)
    };
    let names = ["holdfast.db", "holdfast-backup.json", "config/policy.yaml"];
    let mut spliced: Vec<(String, Vec<u8>)> = names
        .map(|name| {
            (format!("`{name}` of another"), changed(&|entries| entries[at(name)].content = from_two(name)))
        })
        .into();
    let halves = |one: &[u8], two: &[u8]| [&one[..one.len() / 2], &two[two.len() / 2..]].concat();
    spliced.extend([
        ("halves".to_owned(), halves(&one, &two)),
        ("other halves".to_owned(), halves(&two, &one)),
        ("one after the other".to_owned(), [one.as_slice(), &two].concat()),
        ("one in the other".to_owned(), packed(&[of_one.as_slice(), &of_two].concat())),
        (
            "contents swapped".to_owned(),
            changed(&|entries| {
                let content = entries[database].content.clone();
                entries[database].content = std::mem::replace(&mut entries[policy].content, content);
            }),
        ),
        (
            "names swapped".to_owned(),
            changed(&|entries| {
                let name = entries[database].name.clone();
                entries[database].name = std::mem::replace(&mut entries[manifest].name, name);
            }),
        ),
        ("without a file".to_owned(), changed(&|entries| drop(entries.remove(policy)))),
        ("without the log".to_owned(), changed(&|entries| drop(entries.remove(database)))),
        ("without a manifest".to_owned(), changed(&|entries| drop(entries.remove(manifest)))),
        (
            "a file more".to_owned(),
            changed(&|entries| {
                entries.insert(0, Entry { name: "extensions/tools/x.py".into(), ..entries[policy].clone() })
            }),
        ),
        ("a file again".to_owned(), changed(&|entries| entries.insert(0, entries[policy].clone()))),
        ("a file shorter".to_owned(), changed(&|entries| _ = entries[policy].content.pop())),
        ("a file longer".to_owned(), changed(&|entries| entries[policy].content.push(b'#'))),
        ("an empty log".to_owned(), changed(&|entries| entries[database].content.clear())),
        ("nothing".to_owned(), packed(&[])),
    ]);
    // Blocks of the compressed archive change places.
    for (from, to) in [(1, 2), (1, 6), (3, 4)] {
        let (mut bytes, block) = (one.clone(), one.len() / 8);
        let (left, right) = (one[from * block..][..block].to_vec(), one[to * block..][..block].to_vec());
        bytes[from * block..][..block].copy_from_slice(&right);
        bytes[to * block..][..block].copy_from_slice(&left);
        spliced.push((format!("blocks {from} and {to}"), bytes));
    }
    let target = first.outside().join("spliced");
    let elsewhere = first.root().join("elsewhere");
    for (how, bytes) in spliced {
        fs::write(&target, bytes).unwrap();
        let before = paths(first.root());
        let restore = first.command_at(&elsewhere, &["restore", target.to_str().unwrap()]);
        let refused = finish({ restore }.spawn().unwrap());
        assert!(!refused.err.contains("panicked"), "{how}: {refused:#?}");
        let code = ["HF-2012", "HF-2013"].into_iter().find(|code| refused.err.contains(code));
        refused.fails(2, code.unwrap_or_else(|| panic!("{how} is restored")));
        first.run(&["restore", "--force", target.to_str().unwrap()]).fails(2, code.unwrap());
        assert_eq!(paths(first.root()), before, "{how}");
    }
    // What is put together again as it was is a backup.
    fs::write(&target, packed(&of_one)).unwrap();
    finish(first.command_at(&elsewhere, &["restore", target.to_str().unwrap()]).spawn().unwrap()).ok();
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
fn an_invalid_backup_is_refused_and_changes_nothing() {
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

/// The keys that are in a home's key-value store.
fn keys(home: &Path) -> Vec<String> {
    let database = rusqlite::Connection::open(home.join("data/kv/kv.db")).unwrap();
    let whole: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    let mut keys = database.prepare("SELECT key FROM kv ORDER BY key").unwrap();
    keys.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// A home that is reached over a link is backed up like any other, the databases of built-in extensions included.
#[test]
fn a_home_that_is_a_link_is_backed_up_whole() {
    let scene = home();
    scene.policy("profile: full-auto\n");
    scene.run(&["call", "kv_set", r#"{ "key": "kept", "value": "x" }"#]).ok();
    let links = scene.root().join("links");
    fs::create_dir(&links).unwrap();
    std::os::unix::fs::symlink(scene.home(), links.join("home")).unwrap();
    std::os::unix::fs::symlink(scene.root(), links.join("root")).unwrap();
    for (number, linked) in [links.join("home"), links.join("root/home")].iter().enumerate() {
        let archive = scene.root().join(format!("backup-{number}.tar.zst"));
        finish(scene.command_at(linked, &["backup", archive.to_str().unwrap()]).spawn().unwrap()).ok();
        assert!(members(&archive).contains(&"data/kv/kv.db".to_owned()), "{linked:?}");
        let restored = scene.root().join(format!("restored-{number}"));
        finish(scene.command_at(&restored, &["restore", archive.to_str().unwrap()]).spawn().unwrap()).ok();
        assert!(keys(&restored).contains(&"kept".to_owned()), "{linked:?}");
    }
}

/// SQLite opens no file that somebody else's code has made, whatever the folder of that code is called.
#[test]
fn only_databases_of_built_in_extensions_are_opened_by_a_backup() {
    let scene = home();
    scene.policy("profile: full-auto\n");
    scene.run(&["call", "kv_set", r#"{ "key": "kept", "value": "x" }"#]).ok();
    // An extension whose folder has another name than its id, an MCP server, one that was removed, and a built-in one's folder.
    let folder = scene.home().join("extensions/my-notes");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("manifest.yaml"), "id: notes\nname: Notes\nagent: {}\n").unwrap();
    for name in ["notes/notes.db", "mcp-server/memory.db", "removed/x.db", "kv/other.db"] {
        let path = scene.home().join("data").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, b"SQLite format 3\0 and nothing that is one").unwrap();
        fs::write(path.with_extension("db-wal"), b"text").unwrap();
    }
    let archive = scene.root().join("backup.tar.zst");
    scene.run(&["backup", archive.to_str().unwrap()]).ok();
    let copied = members(&archive);
    for name in ["notes/notes.db", "mcp-server/memory.db", "removed/x.db", "kv/other.db"] {
        for name in [format!("data/{name}"), format!("data/{name}-wal")] {
            assert!(copied.contains(&name), "{name} is copied as a file: {copied:?}");
        }
    }
    assert!(copied.contains(&"data/kv/kv.db".to_owned()), "{copied:?}");

    // A database that is a link now is not followed, and is named.
    let (database, elsewhere) = (scene.home().join("data/kv/kv.db"), scene.outside().join("secret.db"));
    fs::rename(&database, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &database).unwrap();
    let archive = scene.root().join("without.tar.zst");
    let made = scene.run(&["backup", archive.to_str().unwrap()]);
    assert_eq!(made.code, Some(1), "{made:#?}");
    assert!(made.err.contains("warning[HF-2014]: data/kv/kv.db was not copied: it is a link"), "{made:#?}");
    assert!(!members(&archive).contains(&"data/kv/kv.db".to_owned()));
}

// Finding D11: the database of a built-in extension is written while it is copied.
#[test]
fn a_backup_beside_an_owner_that_writes_has_everything_that_was_answered() {
    let scene = home();
    scene.policy("profile: full-auto\n");
    let owner = Owner::begin(&scene);
    let set = |name: &str| {
        let set = |number: usize| {
            let arguments = json!({ "key": format!("{name}-{number}"), "value": "x".repeat(3_000) });
            json!({ "tool": "kv_set", "arguments": arguments })
        };
        let calls: Vec<_> = (0..20).map(set).collect();
        scene.turn(name, &json!([{ "calls": calls }, { "says": "done" }])).ok();
    };
    let mut answered = Vec::new();
    for round in 0..4 {
        let archive = scene.root().join(format!("backup-{round}.tar.zst"));
        set(&format!("before{round}"));
        answered.extend((0..20).map(|number| format!("before{round}-{number}")));
        let mut backup = scene.command(&["backup", archive.to_str().unwrap()]);
        let backup = backup.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // More is written while the copy is made.
        set(&format!("during{round}"));
        finish(backup).ok();
        let names = members(&archive);
        assert!(names.contains(&"data/kv/kv.db".to_owned()), "{names:?}");
        assert!(!names.iter().any(|name| name.starts_with("data/kv/kv.db-")), "{names:?}");
        let restored = scene.root().join(format!("restored-{round}"));
        finish(scene.command_at(&restored, &["restore", archive.to_str().unwrap()]).spawn().unwrap()).ok();
        let keys = keys(&restored);
        for expected in &answered {
            assert!(keys.contains(expected), "{round}: {expected} is missing");
        }
        finish(scene.command_at(&restored, &["log", "verify"]).spawn().unwrap()).ok();
        answered.extend((0..20).map(|number| format!("during{round}-{number}")));
    }
    drop(owner);
}
