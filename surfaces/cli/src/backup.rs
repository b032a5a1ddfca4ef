//! `holdfast backup` and `holdfast restore`: a consistent copy of a home, in use or not, and back again.
//!
//! A backup is a tar archive: the database as SQLite's online backup gives it, and every file of the home that a person or an
//! extension wrote. Sockets, locks and the database's side files stay behind.

use std::fs::{self, File};
use std::path::Path;

use holdfast_contract::problem::{Code, Problem};
use holdfast_home::Home;
use holdfast_store::{Options, Store};
use serde_json::json;

use crate::exit::Exit;
use crate::output::Output;

const DATABASE: &str = "holdfast.db";

pub(crate) fn backup(output: &Output, home: &Home, file: &Path) -> Result<Exit, Problem> {
    let failed = |error: std::io::Error| {
        Problem::new(Code::StoreUnavailable, format!("{} cannot be written: {error}", file.display()))
    };
    if !home.exists() {
        return Err(Problem::new(
            Code::StoreMissing,
            format!("there is no home at {}", home.root().display()),
        ));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let copy = tempfile::Builder::new().prefix(".holdfast-backup").tempdir_in(folder).map_err(failed)?;
    let database = copy.path().join(DATABASE);
    if home.database().is_file() {
        Store::open(&home.database(), Options::default())?.backup(&database)?;
    }
    // It holds the keys and every conversation.
    let mut options = File::options();
    options.write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let archive = options.open(file).map_err(failed)?;
    let mut tar = tar::Builder::new(zstd::Encoder::new(archive, 0).map_err(failed)?);
    tar.follow_symlinks(false);
    if database.is_file() {
        tar.append_path_with_name(&database, DATABASE).map_err(failed)?;
    }
    let mut files = 0u64;
    for path in contents(home.root()).map_err(failed)? {
        let name = path.strip_prefix(home.root()).unwrap_or(&path);
        tar.append_path_with_name(&path, name).map_err(failed)?;
        files += 1;
    }
    let archive = tar.into_inner().and_then(zstd::Encoder::finish).map_err(failed)?;
    archive.sync_all().map_err(failed)?;
    let bytes = archive.metadata().map_err(failed)?.len();
    match output.json {
        true => output.document(&json!({ "file": file, "bytes": bytes, "files": files }))?,
        false => {
            output.line(format!("{} holds the log and {files} files ({bytes} bytes)", file.display()))?
        }
    }
    Ok(Exit::Done)
}

/// What of a home belongs into a backup, besides the database.
fn contents(root: &Path) -> std::io::Result<Vec<std::path::PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (kind, name) = (entry.file_type()?, entry.file_name());
            let name = name.to_string_lossy();
            let at_root = entry.path().parent() == Some(root);
            if at_root && (name.starts_with(DATABASE) || name == "lock" || name.starts_with("control")) {
                continue;
            }
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
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
    let unpacked = tempfile::Builder::new().prefix(".holdfast-restore").tempdir_in(parent).map_err(failed)?;
    let archive = zstd::Decoder::new(File::open(file).map_err(failed)?).map_err(failed)?;
    tar::Archive::new(archive).unpack(unpacked.path()).map_err(failed)?;
    let database = unpacked.path().join(DATABASE);
    if !database.is_file() {
        return Err(Problem::new(Code::StoreMissing, format!("{} holds no log", file.display())));
    }
    let streams = Store::open(&database, Options::default())?.streams()?.len();
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
