//! `holdfast backup` and `holdfast restore`: a consistent copy of a home, in use or not, and back again.
//!
//! A backup is a tar archive: the database as SQLite's online backup gives it, and every file of the home that a person or an
//! extension wrote. Sockets, locks and the database's side files stay behind.

mod archive;
mod target;

#[cfg(test)]
mod archive_tests;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use holdfast_contract::problem::{Code, Problem};
use holdfast_home::Home;
use holdfast_store::{Store, StoreOptions};
use serde_json::json;

use crate::commands::offline::backup::archive::{Copied, Identity, Refusal, identity};
use crate::commands::offline::backup::target::{PREFIX, Target, unwritable};
use crate::exit::Exit;
use crate::output::{Output, tell};

const DATABASE: &str = "holdfast.db";

pub(crate) fn backup(output: &Output, home: &Home, file: &Path) -> Result<Exit, Problem> {
    let failed = |error| unwritable(file, error);
    if !home.exists() {
        return Err(Problem::new(
            Code::StoreMissing,
            format!("there is no home at {}", home.root().display()),
        ));
    }
    let target = Target::new(home, file)?;
    let database = match home.database().is_file() {
        true => Some(copy_database(home, &target)?),
        false => None,
    };
    let draft = target.draft()?;
    let mut tar = tar::Builder::new(zstd::Encoder::new(draft.file(), 0).map_err(failed)?);
    if let Some(database) = database {
        let name = Path::new(DATABASE);
        archive::append(&mut tar, &database, || database.metadata(), name).map_err(failed)?;
    }
    let (mut files, mut shortened) = (0u64, Vec::new());
    let root = File::open(home.root()).map_err(failed)?;
    for name in contents(home.root(), draft.identity().map_err(failed)?).map_err(failed)? {
        match archive::append_file(&mut tar, &root, &name).map_err(failed)? {
            Copied::Gone => continue,
            Copied::Whole => {}
            Copied::Shortened => shortened.push(name),
        }
        files += 1;
    }
    tar.into_inner().and_then(zstd::Encoder::finish).map_err(failed)?;
    draft.file().sync_all().map_err(failed)?;
    let bytes = draft.file().metadata().map_err(failed)?.len();
    target.publish(draft)?;
    for name in &shortened {
        let name = name.display().to_string();
        tell(format_args!(
            "warning: {} became shorter while it was copied; the rest is zeros",
            name.escape_debug()
        ));
    }
    match output.json {
        true => output.document(&json!({ "file": file, "bytes": bytes, "files": files }))?,
        false => {
            output.line(format!("{} holds the log and {files} files ({bytes} bytes)", file.display()))?
        }
    }
    Ok(Exit::Done)
}

/// A copy of the database as it is now, in a file that has no name any more.
fn copy_database(home: &Home, target: &Target) -> Result<File, Problem> {
    let failed = |error| unwritable(target.folder(), error);
    let private = fs::Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(target.folder());
    let folder = folder.map_err(failed)?;
    let copy = folder.path().join(DATABASE);
    Store::open(&home.database(), StoreOptions::default())?.backup(&copy)?;
    let file = File::open(&copy).map_err(failed)?;
    folder.close().map_err(failed)?;
    Ok(file)
}

/// The names of what belongs into a backup of a home, besides the database: plain files, without the one that is being written.
fn contents(root: &Path, written: Identity) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            // An extension has deleted it since it was listed.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && folder != root => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let (kind, name) = (entry.file_type()?, entry.file_name());
            let name = name.to_string_lossy();
            let at_root = entry.path().parent() == Some(root);
            if at_root && (name.starts_with(DATABASE) || name == "lock" || name.starts_with("control")) {
                continue;
            }
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && entry.metadata().is_ok_and(|metadata| identity(&metadata) != written)
            {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found.iter().filter_map(|path| path.strip_prefix(root).ok()).map(Path::to_owned).collect())
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
    let archive = zstd::Decoder::new(File::open(file).map_err(failed)?).map_err(failed)?;
    archive::unpack(archive, unpacked.path()).map_err(|refusal| match refusal {
        Refusal::Invalid(why) => Problem::new(Code::BackupInvalid, format!("{}: {why}", file.display())),
        Refusal::Io(error) => failed(error),
    })?;
    let database = unpacked.path().join(DATABASE);
    if !database.is_file() {
        return Err(Problem::new(Code::StoreMissing, format!("{} holds no log", file.display())));
    }
    let streams = Store::open(&database, StoreOptions::default())?.streams()?.len();
    let aside = match taken {
        true => {
            // Nobody may be living in it.
            let ownership = home.own()?;
            let aside =
                root.with_extension(format!("before-{}", jiff::Zoned::now().strftime("%Y%m%d-%H%M%S")));
            fs::rename(root, &aside).map_err(failed)?;
            drop(ownership);
            Some(aside)
        }
        false => {
            drop(fs::remove_dir(root));
            None
        }
    };
    fs::rename(unpacked.keep(), root).map_err(failed)?;
    match output.json {
        true => output.document(&json!({ "home": root, "streams": streams, "aside": aside }))?,
        false => {
            output.line(format!("{} has {streams} streams again", root.display()))?;
            if let Some(aside) = aside {
                output.line(format!("what was there is in {}", aside.display()))?;
            }
        }
    }
    Ok(Exit::Done)
}
