//! The capability `files`: the extension's own data folder, and the folders that it is granted. Paths are resolved from the handle of
//! such a folder, so that no link leads out of it. The home is never part of a granted folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::arguments::{FileArguments, FileWriteArguments};
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::Access;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Bundle, Later};
use holdfast_policy::GrantedAccess;
use holdfast_untrusted_files::{FolderTree, TreeEntry, TreeError, walk};
use serde_json::{Value, json};

use super::network::denied;
use super::{received, sent};
use crate::host::{Caller, failed};
use crate::parts::FilePlaces;
use crate::runtime::Inner;

/// The largest file that is read or written.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The entries of the largest folder that is listed.
const MAX_ENTRIES: usize = 10_000;

/// What is done at a path.
pub(in crate::host) enum FileDeed {
    Read,
    List,
    Stat,
    Write(Vec<u8>),
    Remove,
    MakeFolder,
}

impl FileDeed {
    fn access(&self) -> Access {
        match self {
            Self::Read | Self::List | Self::Stat => Access::Read,
            Self::Write(_) | Self::Remove | Self::MakeFolder => Access::Write,
        }
    }
}

impl Inner {
    pub(in crate::host) fn file_write(
        self: &Arc<Self>,
        caller: &Caller,
        arguments: FileWriteArguments,
    ) -> Later<Result<Content, Fault>> {
        match received(arguments.content) {
            Ok(bytes) if bytes.len() as u64 > MAX_FILE_BYTES => {
                let message = format!("a file may have {MAX_FILE_BYTES} bytes");
                failed(Fault::new(Code::ToolArguments, message))
            }
            Ok(bytes) => self.file(caller, FileArguments { path: arguments.path }, FileDeed::Write(bytes)),
            Err(fault) => failed(fault),
        }
    }

    pub(in crate::host) fn file(
        self: &Arc<Self>,
        caller: &Caller,
        arguments: FileArguments,
        deed: FileDeed,
    ) -> Later<Result<Content, Fault>> {
        let (inner, id, digest) = (self.clone(), caller.extension.id.clone(), caller.extension.digest);
        Box::pin(async move {
            let Some(places) = inner.home.places().cloned() else {
                return Err(denied("this system has no folders for extensions".to_owned()));
            };
            let bundle = inner.activation(digest)?;
            let work = move || do_file(&places, &id, &bundle, &arguments.path, deed);
            let done = tokio::task::spawn_blocking(work).await;
            let mut content = done.map_err(|error| Fault::new(Code::Internal, error.to_string()))??;
            // The extension gets what is recorded, so that a replay gives it the same.
            inner.home.redact_content(&mut content);
            Ok(content)
        })
    }
}

fn do_file(
    places: &FilePlaces,
    id: &ExtensionId,
    bundle: &Bundle,
    given: &str,
    deed: FileDeed,
) -> Result<Content, Fault> {
    let located = locate(places, id, bundle, given, deed.access())?;
    let failed = |error: TreeError| fault(given, &error);
    if let (FileDeed::Write(bytes), Root::Own) = (&deed, located.root) {
        check_quota(&places.data.join(id.as_str()), bytes.len() as u64, bundle.budgets.disk_bytes)?;
    }
    let (tree, path) = (located.tree, located.path.as_path());
    Ok(match deed {
        FileDeed::Read => Content::new(sent(tree.read(path, MAX_FILE_BYTES).map_err(failed)?)),
        FileDeed::List => {
            let entries = tree.list(path, MAX_ENTRIES).map_err(failed)?;
            Content::new(entries.iter().map(entry).collect())
        }
        FileDeed::Stat => match tree.stat(path) {
            Ok(found) => Content::new(entry(&found)),
            Err(TreeError::NotFound) => Content::default(),
            Err(error) => return Err(failed(error)),
        },
        FileDeed::Write(bytes) => nothing(tree.write(path, &bytes).map_err(failed)?),
        FileDeed::Remove => nothing(tree.remove(path).map_err(failed)?),
        FileDeed::MakeFolder => nothing(tree.make_folder(path).map_err(failed)?),
    })
}

fn nothing((): ()) -> Content {
    Content::default()
}

fn entry(found: &TreeEntry) -> Value {
    json!({ "name": found.name, "kind": found.kind, "bytes": found.bytes })
}

#[derive(Clone, Copy)]
enum Root {
    /// The extension's own data folder.
    Own,
    /// A granted folder or file.
    Granted,
}

struct Located {
    root: Root,
    tree: FolderTree,
    path: PathBuf,
}

/// The tree that a path is in, and the path within it.
fn locate(
    places: &FilePlaces,
    id: &ExtensionId,
    bundle: &Bundle,
    given: &str,
    access: Access,
) -> Result<Located, Fault> {
    let refused = |why: &str| Err(Fault::new(Code::PathRefused, format!("{given:?} is refused: {why}")));
    let path = Path::new(given);
    if given.contains('\0') || path.components().any(|part| part == std::path::Component::ParentDir) {
        return refused("a path has no `..` and no NUL character in it");
    }
    let absolute = match given.strip_prefix("~/") {
        Some(rest) => places.user.join(rest),
        None if path.is_absolute() => path.to_owned(),
        None => {
            let own = places.data.join(id.as_str());
            std::fs::create_dir_all(&own).map_err(|error| fault(given, &error.into()))?;
            let tree = FolderTree::open(&own).map_err(|error| fault(given, &error))?;
            let path = path.components().filter(|part| *part != std::path::Component::CurDir).collect();
            return Ok(Located { root: Root::Own, tree, path });
        }
    };
    let reach = GrantedAccess::of(&bundle.grants);
    let Some(root) = absolute.to_str().and_then(|path| reach.file_root(path, access)) else {
        let how = if access == Access::Write { "write" } else { "read" };
        let help = format!("`holdfast ext grant {id} --{how} PATH`, for a folder that its manifest asks for");
        return Err(denied(format!("{given:?} is not granted: {help}")));
    };
    let (root, without) = (PathBuf::from(root), &places.home);
    let inside = absolute.strip_prefix(&root).unwrap_or(Path::new("")).to_owned();
    // A grant of one file is a grant of nothing else in its folder.
    let (folder, path) = if root.is_dir() || !inside.as_os_str().is_empty() {
        (root, inside)
    } else {
        let name = root.file_name().map(PathBuf::from).unwrap_or_default();
        let folder = root.parent().map(Path::to_owned).unwrap_or_default();
        if folder.join(&name).is_symlink() {
            return refused("a granted file is not a link");
        }
        (folder, name)
    };
    let tree = FolderTree::open(&folder).map_err(|error| fault(given, &error))?.without(without);
    Ok(Located { root: Root::Granted, tree, path })
}

/// Refuses to fill the data folder beyond its quota.
fn check_quota(folder: &Path, more: u64, quota: u64) -> Result<(), Fault> {
    let mut used = more;
    let walked = walk(folder, &mut |entry| {
        used = used.saturating_add(entry.disk_bytes);
        std::ops::ControlFlow::Continue(())
    });
    walked
        .map_err(|error| Fault::new(Code::ToolFailed, format!("the data folder cannot be read: {error}")))?;
    if used > quota {
        let message = format!("the data folder would have more than its {quota} bytes (`disk_bytes`)");
        return Err(Fault::new(Code::ToolFailed, message));
    }
    Ok(())
}

fn fault(given: &str, error: &TreeError) -> Fault {
    match error {
        TreeError::NotFound => Fault::new(Code::FileMissing, format!("{given:?}: {error}")),
        TreeError::Refused(_) => Fault::new(Code::PathRefused, format!("{given:?} is refused: {error}")),
        TreeError::Failed(_) => Fault::new(Code::ToolFailed, format!("{given:?}: {error}")),
    }
}
