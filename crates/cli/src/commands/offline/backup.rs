//! `holdfast backup` and `holdfast restore`: a consistent copy of a home, in use or not, and back again.
//!
//! A backup is a tar archive: every file of the home that a person or an extension wrote, then the database, then a manifest with the
//! digest of each. The database, and those of built-in extensions, are as SQLite's online backup gives them. Sockets, locks, caches and
//! the side files of these databases stay behind.

mod archive;
mod manifest;
mod target;

#[cfg(test)]
mod archive_tests;

use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use holdfast_contract::problem::{Code, Problem};
use holdfast_home::Home;
use holdfast_replay::verify;
use holdfast_store::{Store, StoreOptions, copy_database};
use holdfast_untrusted_files::open_regular;
use serde_json::json;

use crate::commands::offline::backup::archive::{ArchiveWriter, Copied, Identity, Refusal, identity};
use crate::commands::offline::backup::manifest::MANIFEST;
use crate::commands::offline::backup::target::{PREFIX, Target, unwritable};
use crate::commands::offline::home::{damage, open};
use crate::exit::Exit;
use crate::output::{Output, tell};

const DATABASE: &str = "holdfast.db";
/// What can be made again from the database or from the network, and is not copied.
const CACHES: &[&str] = &["generations", "environments"];
/// The databases of built-in extensions, which may be written meanwhile. Only these are opened: every other file in `data/` may be what
/// the code of an installed extension, an MCP server or a removed extension has made.
const BUILT_IN_DATABASES: &[&str] = &["data/kv/kv.db"];
/// How a zstd frame begins.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// How a database of SQLite begins.
const SQLITE: &[u8; 16] = b"SQLite format 3\0";

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
    let root = File::open(home.root()).map_err(failed)?;
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
    for name in files {
        match archive.append_file(&root, &name).map_err(failed)? {
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
    let names = skipped.iter().map(|skipped| shown(&skipped.name)).collect::<Vec<_>>();
    archive.finish(names.clone()).and_then(zstd::Encoder::finish).map_err(failed)?;
    draft.file().sync_all().map_err(failed)?;
    let bytes = draft.file().metadata().map_err(failed)?.len();
    target.publish(draft)?;
    for name in &shortened {
        tell(format_args!("warning: {} became shorter while it was copied; the rest is zeros", shown(name)));
    }
    for Skipped { name, error } in &skipped {
        let what = format!("{} was not copied: {error}", shown(name));
        tell(format_args!("{}", Problem::warning(Code::BackupIncomplete, what)));
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

/// What belongs into a backup of a home, besides the database.
#[derive(Default)]
struct Contents {
    /// Plain files, by their path in the home.
    files: Vec<PathBuf>,
    /// Databases of built-in extensions, which may be written meanwhile.
    databases: Vec<PathBuf>,
    /// Folders that cannot be read.
    skipped: Vec<Skipped>,
}

/// A file or folder that cannot be read.
struct Skipped {
    name: PathBuf,
    error: io::Error,
}

/// Lists a home without the database, the caches, what belongs to a running owner, and the file that is being written.
fn contents(home: &Home, written: Identity) -> io::Result<Contents> {
    let (root, mut found) = (home.root(), Contents::default());
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let at_root = folder.as_os_str().is_empty();
        let entries = fs::read_dir(root.join(&folder)).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = match entries {
            Err(error) if at_root => return Err(error),
            // An extension has deleted it since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                found.skipped.push(Skipped { name: folder, error });
                continue;
            }
            Ok(entries) => entries,
        };
        for entry in entries {
            let name = folder.join(entry.file_name());
            if at_root && stays_behind(&entry.file_name().to_string_lossy()) {
                continue;
            }
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(name),
                Ok(metadata) if metadata.is_file() && identity(&metadata) != written => {
                    found.files.push(name);
                }
                Ok(metadata) if metadata.is_symlink() && is_built_in_database(home, &name) => {
                    let error = io::Error::other("it is a link, and databases are not reached over links");
                    found.skipped.push(Skipped { name, error });
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => found.skipped.push(Skipped { name, error }),
            }
        }
    }
    found.files.sort();
    let is_database =
        |name: &PathBuf| is_built_in_database(home, name) && begins_as_database(&root.join(name));
    found.databases = found.files.extract_if(.., |name| is_database(name)).collect();
    let is_beside = |name: &Path| found.databases.iter().any(|database| is_side_file(name, database));
    found.files.retain(|name| !is_beside(name));
    Ok(found)
}

/// Whether this is the database of a built-in extension, and no extension of the user's takes that one's place.
fn is_built_in_database(home: &Home, name: &Path) -> bool {
    let is_known = BUILT_IN_DATABASES.iter().any(|database| name == Path::new(database));
    let id = name.strip_prefix("data").ok().and_then(|rest| rest.iter().next());
    is_known && id.is_some_and(|id| home.extensions().join(id).symlink_metadata().is_err())
}

fn begins_as_database(path: &Path) -> bool {
    let mut begin = [0; SQLITE.len()];
    let file = open_regular(File::options().read(true), path);
    file.is_ok_and(|mut file| file.read_exact(&mut begin).is_ok() && begin == *SQLITE)
}

/// Whether a file is one that SQLite keeps beside a database while it is in use.
fn is_side_file(name: &Path, database: &Path) -> bool {
    let rest = name.as_os_str().as_encoded_bytes().strip_prefix(database.as_os_str().as_encoded_bytes());
    rest.is_some_and(|rest| matches!(rest, b"-wal" | b"-shm" | b"-journal"))
}

/// Whether something directly in the home is not copied as a file.
fn stays_behind(name: &str) -> bool {
    name.starts_with(DATABASE)
        || name.starts_with("control")
        || name == "lock"
        || name == MANIFEST
        || CACHES.contains(&name)
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
    let private = fs::Permissions::from_mode(0o700);
    let mut unpacked = tempfile::Builder::new();
    let unpacked =
        unpacked.prefix(".holdfast-restore").permissions(private).tempdir_in(parent).map_err(failed)?;
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
    for name in &manifest.skipped {
        let what = format!("the backup does not have {name}: it could not be read then");
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
    fs::rename(unpacked.keep(), root).map_err(failed)?;
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
