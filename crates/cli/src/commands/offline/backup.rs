//! `holdfast backup` and `holdfast restore`: a consistent copy of a home, in use or not, and back again.
//!
//! A backup is a tar archive: every file of the home that a person or an extension wrote, then the database, then a manifest with the
//! digest of each. The database, and those of built-in extensions, are as SQLite's online backup gives them. Sockets, locks, caches and
//! the side files of these databases stay behind. `backup/contents.rs` lists the files.

mod archive;
mod contents;
mod manifest;
mod target;

#[cfg(test)]
mod archive_tests;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use holdfast_contract::problem::{Code, Problem};
use holdfast_home::Home;
use holdfast_replay::verify;
use holdfast_store::{Store, StoreOptions, copy_database};
use holdfast_untrusted_files::{TempFolder, open_regular};
use serde_json::json;

use crate::commands::offline::backup::archive::{ArchiveWriter, Copied, Refusal, make_folder, relative};
use crate::commands::offline::backup::contents::{Contents, FoundFile, Skipped, contents, decides};
use crate::commands::offline::backup::manifest::Manifest;
use crate::commands::offline::backup::target::{PREFIX, Target, unwritable};
use crate::commands::offline::home::{damage, open};
use crate::exit::Exit;
use crate::output::{Output, tell};

const DATABASE: &str = "holdfast.db";
/// How many files that were not copied are named.
const MAX_NAMED: usize = 1_000;
/// What is put in the place of a file that a backup lacks: nothing that reads text takes it.
const MISSING: &[u8] =
    b"\xff\xfe this file was not in the backup; replace it, or remove it if it is not needed\n";
/// How a zstd frame begins.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

pub(crate) fn backup(output: &Output, home: &Home, file: &Path) -> Result<Exit, Problem> {
    let failed = |error| unwritable(file, error);
    if !home.exists() {
        return Err(Problem::new(
            Code::StoreMissing,
            format!("there is no home at {}", home.root().display()),
        ));
    }
    let target = Target::new(home, file)?;
    // A backup without a log could not be restored.
    let log = open(home)?;
    let draft = target.draft()?;
    let mut encoder = zstd::Encoder::new(draft.file(), 0).map_err(failed)?;
    encoder.include_checksum(true).map_err(failed)?;
    let mut archive = ArchiveWriter::new(encoder);
    let Contents { files, databases, mut skipped } =
        contents(home, draft.identity().map_err(failed)?).map_err(failed)?;
    let (mut copied, mut shortened) = (0u64, Vec::new());
    // SQLite refuses every link on the way to these databases, and the home itself may be reached over one.
    let folder = home.canonical();
    for name in databases {
        let copy = || copy_to(&target, |copy| copy_database(&folder.join(&name), copy));
        let done = copy().map_err(io::Error::other).map_or_else(
            |error| Ok(Copied::Unreadable(error)),
            |file| archive.append(&file, || file.metadata(), &name).map_err(failed),
        )?;
        match done {
            Copied::Unreadable(error) => skipped.push(Skipped { name, error }),
            _ => copied += 1,
        }
    }
    let mut bases = BTreeMap::new();
    for FoundFile { name, base, inner } in files {
        let base = match bases.entry(base) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(new) => match File::open(new.key()) {
                Ok(open) => new.insert(open),
                Err(error) => {
                    skipped.push(Skipped { name, error });
                    continue;
                }
            },
        };
        match archive.append_file(base, &inner, &name).map_err(failed)? {
            Copied::Gone => continue,
            Copied::Unreadable(error) => {
                skipped.push(Skipped { name, error });
                continue;
            }
            Copied::Whole => {}
            Copied::Shortened => shortened.push(name),
        }
        copied += 1;
    }
    // The database comes last. What an extension notes as done in its folder was in the log before: a log that is copied later has it.
    let database = copy_to(&target, |copy| log.backup(copy))?;
    if let Copied::Unreadable(error) =
        archive.append(&database, || database.metadata(), Path::new(DATABASE)).map_err(failed)?
    {
        return Err(failed(error));
    }
    let damaged = damage("the log was copied as it is, and is damaged", &verify(&log, None)?.findings);
    let unnamed = skipped.len().saturating_sub(MAX_NAMED);
    let names = skipped.iter().take(MAX_NAMED).map(|skipped| shown(&skipped.name)).collect::<Vec<_>>();
    archive.finish(names.clone()).and_then(zstd::Encoder::finish).map_err(failed)?;
    draft.file().sync_all().map_err(failed)?;
    let bytes = draft.file().metadata().map_err(failed)?.len();
    target.publish(draft)?;
    for name in &shortened {
        tell(format_args!("warning: {} became shorter while it was copied; the rest is zeros", shown(name)));
    }
    let incomplete = |what: String| tell(format_args!("{}", Problem::warning(Code::BackupIncomplete, what)));
    for Skipped { name, error } in skipped.iter().take(MAX_NAMED) {
        incomplete(format!("{} was not copied: {error}", shown(name)));
    }
    if unnamed > 0 {
        incomplete(format!("{unnamed} more were not copied"));
    }
    if output.json {
        output.document(&json!({ "file": file, "bytes": bytes, "files": copied, "skipped": names }))?
    } else {
        output.line(format!("{} holds the log and {copied} files ({bytes} bytes)", file.display()))?
    }
    damaged.map_or(Ok(skipped.is_empty().into()), Err)
}

/// A path as it is shown.
fn shown(path: &Path) -> String {
    path.display().to_string().escape_debug().to_string()
}

/// A copy of a database as it is now, in a file that has no name any more.
fn copy_to(target: &Target, write: impl FnOnce(&Path) -> Result<(), Problem>) -> Result<File, Problem> {
    let failed = |error| unwritable(target.folder(), error);
    let private = fs::Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(target.folder());
    let folder = folder.map_err(failed)?;
    let copy = folder.path().join(DATABASE);
    write(&copy)?;
    let file = File::open(&copy).map_err(failed)?;
    folder.close().map_err(failed)?;
    Ok(file)
}

/// Puts something in the place of what the backup lacks and that decides about agents: it is not text, so whatever reads it refuses it. A
/// policy or an extension that judges is then not taken for absent.
fn mark_missing(manifest: &Manifest, folder: &Path) -> io::Result<()> {
    for name in manifest.skipped.iter().filter_map(|name| relative(Path::new(name))) {
        let path = folder.join(&name);
        if !decides(&name) || path.symlink_metadata().is_ok() {
            continue;
        }
        let Some(parent) = path.parent() else { continue };
        // What it was in may itself be missing, and marked.
        if make_folder(parent).is_ok() {
            fs::write(&path, MISSING)?;
        }
    }
    Ok(())
}

pub(crate) fn restore(output: &Output, home: &Home, file: &Path, force: bool) -> Result<Exit, Problem> {
    let failed = |error: std::io::Error| {
        Problem::new(Code::StoreUnavailable, format!("{} cannot be restored: {error}", file.display()))
    };
    let root = home.root();
    let taken = fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some());
    if taken && !force {
        let problem = Problem::new(Code::UsageInvalid, format!("{} is not empty", root.display()));
        return Err(
            problem.help("Name another home with --home, or put the one that is there aside with --force.")
        );
    }
    let parent = root.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(failed)?;
    // Unpacked beside the home and checked before it takes its place: a bad archive changes nothing.
    let unpacked = TempFolder::within(parent).map_err(failed)?;
    let refused = |code, why: &str| Problem::new(code, format!("{}: {why}", file.display()));
    let mut opened = open_regular(File::options().read(true), file).map_err(|error| failed(error.into()))?;
    let mut begin = Vec::new();
    (&mut opened).take(ZSTD.len() as u64).read_to_end(&mut begin).map_err(failed)?;
    if begin != ZSTD {
        return Err(refused(Code::BackupInvalid, "it does not begin as a compressed archive"));
    }
    let archive = zstd::Decoder::new(Cursor::new(begin).chain(opened)).map_err(failed)?;
    let manifest = archive::unpack(archive, unpacked.path()).map_err(|refusal| match refusal {
        Refusal::Invalid(why) => refused(Code::BackupInvalid, &why),
        Refusal::Damaged(why) => refused(Code::BackupDamaged, &why),
        Refusal::Io(error) => failed(error),
    })?;
    let database = unpacked.path().join(DATABASE);
    if !database.is_file() {
        return Err(Problem::new(Code::StoreMissing, format!("{} holds no log", file.display())));
    }
    let log = Store::open(&database, StoreOptions::default())?;
    let streams = log.streams()?.len();
    let damaged = damage("the log was damaged when it was copied", &verify(&log, None)?.findings);
    log.close();
    mark_missing(&manifest, unpacked.path()).map_err(failed)?;
    for name in &manifest.skipped {
        let what = format!("the backup does not have {name}: it was not copied then");
        tell(format_args!("{}", Problem::warning(Code::BackupIncomplete, what)));
    }
    let aside = if taken {
        // No process may own it.
        let ownership = home.own()?;
        let aside = root.with_extension(format!("before-{}", jiff::Zoned::now().strftime("%Y%m%d-%H%M%S")));
        fs::rename(root, &aside).map_err(failed)?;
        drop(ownership);
        Some(aside)
    } else {
        drop(fs::remove_dir(root));
        None
    };
    unpacked.keep_as(root).map_err(failed)?;
    if output.json {
        output.document(&json!({ "home": root, "streams": streams, "aside": aside }))?
    } else {
        output.line(format!("{} has {streams} streams again", root.display()))?;
        if let Some(aside) = aside {
            output.line(format!("what was there is in {}", aside.display()))?;
        }
    }
    damaged.map_or(Ok(Exit::Done), Err)
}
