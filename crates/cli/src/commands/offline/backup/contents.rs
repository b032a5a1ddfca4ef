//! What of a home belongs into a backup. What decides in a home may be a link to another place: what such a link leads to is copied under
//! the link's own name, because a home that is restored elsewhere would be without a policy, or without an extension that judges. No
//! other link is followed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use holdfast_contract::manifest::DECIDING_FOLDERS;
use holdfast_home::Home;
use holdfast_untrusted_files::open_regular;

use crate::commands::offline::backup::DATABASE;
use crate::commands::offline::backup::archive::{Identity, identity};
use crate::commands::offline::backup::manifest::MANIFEST;

/// What can be made again from the database or from the network, and is not copied.
const CACHES: &[&str] = &["generations", "environments"];
/// The databases of built-in extensions, which may be written meanwhile. Only these are opened: every other file in `data/` may be what
/// the code of an installed extension, an MCP server or a removed extension has made.
const BUILT_IN_DATABASES: &[&str] = &["data/kv/kv.db"];
/// How a database of SQLite begins.
const SQLITE: &[u8; 16] = b"SQLite format 3\0";
/// The parts of a home that may be links.
const PARTS: &[&str] = &[
    "config",
    "prompts",
    "extensions",
    "mcp",
    "data",
    ".env",
    "secrets.age",
    "secrets.key",
    "secrets.digest",
    "conversations.json",
];
/// What was approved of MCP servers, a file each.
const APPROVALS: &str = "mcp";
/// The folder of the extensions' private folders.
const DATA: &str = "data";
/// The file that makes a folder an extension.
const EXTENSION_MANIFEST: &str = "manifest.yaml";

/// What belongs into a backup of a home, besides the database.
#[derive(Default)]
pub(super) struct Contents {
    /// Plain files.
    pub files: Vec<FoundFile>,
    /// Databases of built-in extensions, which may be written meanwhile, by their path in the home.
    pub databases: Vec<PathBuf>,
    /// What cannot be copied.
    pub skipped: Vec<Skipped>,
}

/// A file to copy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FoundFile {
    /// Its path in the home.
    pub name: PathBuf,
    /// The folder that it is found in, with links resolved, and its path from there, on which no link is followed.
    pub base: PathBuf,
    pub inner: PathBuf,
}

/// What is not copied, and why.
pub(super) struct Skipped {
    pub name: PathBuf,
    pub error: io::Error,
}

/// What is done about a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkRule {
    /// What it leads to is copied.
    Follow,
    /// It is named as not copied.
    Report,
    /// It does not belong to the home: links in the folder of an extension are not read.
    Ignore,
}

impl LinkRule {
    fn of(name: &Path) -> Self {
        let parent = name.parent().unwrap_or(Path::new(""));
        let is_at_root = parent.as_os_str().is_empty();
        let decides = || DECIDING_FOLDERS.iter().any(|folder| parent == Path::new(folder));
        if is_at_root {
            let is_part = PARTS.iter().any(|part| name == Path::new(part));
            return if is_part { Self::Follow } else { Self::Report };
        }
        if decides() || parent == Path::new(APPROVALS) {
            Self::Follow
        } else if name.starts_with("extensions") && !name.ends_with(EXTENSION_MANIFEST) {
            Self::Ignore
        } else {
            Self::Report
        }
    }
}

/// Whether something is put in the place of what a backup lacks, so that it is not taken for absent: what decides about agents.
pub(super) fn decides(name: &Path) -> bool {
    PARTS.iter().any(|part| name.starts_with(part) && *part != DATA)
}

/// A folder that is looked through.
struct Folder {
    /// Its path in the home.
    name: PathBuf,
    base: PathBuf,
    inner: PathBuf,
    /// Whether a link of an extension led here: then what its loader passes over does not belong to the home.
    linked_code: bool,
}

/// Lists a home without the database, the caches, what belongs to a running owner, and the file that is being written.
pub(super) fn contents(home: &Home, written: Identity) -> io::Result<Contents> {
    let (root, mut found) = (home.canonical(), Contents::default());
    let whole =
        Folder { name: PathBuf::new(), base: root.clone(), inner: PathBuf::new(), linked_code: false };
    let mut folders = vec![whole];
    while let Some(folder) = folders.pop() {
        let at_root = folder.name.as_os_str().is_empty();
        let entries =
            fs::read_dir(folder.base.join(&folder.inner)).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = match entries {
            Err(error) if at_root => return Err(error),
            // An extension has deleted it since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                found.skipped.push(Skipped { name: folder.name, error });
                continue;
            }
            Ok(entries) => entries,
        };
        for entry in entries {
            let file_name = entry.file_name();
            let name = folder.name.join(&file_name);
            let shown = file_name.to_string_lossy();
            if at_root && stays_behind(&shown) || folder.linked_code && is_no_code(&entry.path(), &shown) {
                continue;
            }
            let inner = folder.inner.join(&file_name);
            let here = FoundFile { name, base: folder.base.clone(), inner };
            match entry.metadata() {
                Ok(metadata) if metadata.is_symlink() => {
                    found.add_link(home, &root, here, written, &mut folders);
                }
                Ok(metadata) if metadata.is_dir() => {
                    let FoundFile { name, base, inner } = here;
                    folders.push(Folder { name, base, inner, linked_code: folder.linked_code });
                }
                Ok(metadata) if metadata.is_file() => {
                    found.files.extend((identity(&metadata) != written).then_some(here));
                }
                // In their own folders, extensions leave sockets and pipes.
                Ok(_) if here.name.starts_with(DATA) => {}
                Ok(_) => {
                    let error = io::Error::other("it is neither a file nor a folder");
                    found.skipped.push(Skipped { name: here.name, error });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => found.skipped.push(Skipped { name: here.name, error }),
            }
        }
    }
    found.files.sort();
    let is_database = |file: &mut FoundFile| {
        is_built_in_database(home, &file.name) && begins_as_database(&file.base.join(&file.inner))
    };
    found.databases = found.files.extract_if(.., is_database).map(|file| file.name).collect();
    let is_beside = |name: &Path| found.databases.iter().any(|database| is_side_file(name, database));
    found.files.retain(|file| !is_beside(&file.name));
    // What decides first, and what is near the root: not all are named if there are very many.
    found.skipped.sort_by_cached_key(|skipped| {
        (skipped.name.starts_with(DATA), skipped.name.components().count(), skipped.name.clone())
    });
    Ok(found)
}

impl Contents {
    fn add_link(
        &mut self,
        home: &Home,
        root: &Path,
        link: FoundFile,
        written: Identity,
        folders: &mut Vec<Folder>,
    ) {
        let name = link.name;
        let mut skip = |why: &str| {
            let error = io::Error::other(why.to_owned());
            self.skipped.push(Skipped { name: name.clone(), error });
        };
        match LinkRule::of(&name) {
            LinkRule::Ignore => return,
            _ if is_built_in_database(home, &name) => {
                return skip("it is a link, and databases are not reached over links");
            }
            LinkRule::Report => return skip("it is a link, which is not followed"),
            LinkRule::Follow => {}
        }
        let target = link.base.join(&link.inner).canonicalize().and_then(|path| {
            let metadata = path.metadata()?;
            Ok((path, metadata))
        });
        match target {
            Err(error) => skip(&format!("it is a link that leads nowhere: {error}")),
            Ok((path, metadata)) if metadata.is_dir() => {
                if root.starts_with(&path) {
                    return skip("it is a link to a folder that has the home in it");
                }
                let linked_code = name.starts_with("extensions") && name != Path::new("extensions");
                folders.push(Folder { name, base: path, inner: PathBuf::new(), linked_code });
            }
            Ok((path, metadata)) if metadata.is_file() => match (path.parent(), path.file_name()) {
                (Some(base), Some(inner)) if identity(&metadata) != written => {
                    self.files.push(FoundFile { name, base: base.to_owned(), inner: inner.into() });
                }
                _ => {}
            },
            Ok(_) => skip("it is a link to something that is neither a file nor a folder"),
        }
    }
}

/// What the loader passes over in the folder of an extension: hidden files, and what Python makes.
fn is_no_code(path: &Path, name: &str) -> bool {
    name.starts_with('.') || name == "__pycache__" || path.join("pyvenv.cfg").exists()
}

/// Whether this is the database of a built-in extension, and no extension of the user's takes that one's place.
fn is_built_in_database(home: &Home, name: &Path) -> bool {
    let is_known = BUILT_IN_DATABASES.iter().any(|database| name == Path::new(database));
    let id = name.strip_prefix(DATA).ok().and_then(|rest| rest.iter().next());
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
