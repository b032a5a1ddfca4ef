//! Replaces files atomically: a reader, and the state after a crash at any moment, has the old content or the new one.
//!
//! [`replace`] writes a file in one call. [`FileDraft`] is for callers that do something between writing the new content and
//! putting it in place, or that must not overwrite. Use this crate wherever a file is replaced. Do not follow links or choose
//! permissions here: callers do.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

#[cfg(test)]
mod atomic_file_tests;

/// Replaces a file, or creates it, with these permission bits. The draft's name contains the process id, so that several processes
/// can replace the same file.
pub fn replace(target: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let draft = target.with_file_name(format!(".{name}.{}.draft", std::process::id()));
    FileDraft::write(draft, target, bytes, mode)?.commit()
}

/// The new content of a file, on disk in the same folder and not yet in its place.
#[derive(Debug)]
pub struct FileDraft {
    draft: PathBuf,
    target: PathBuf,
}

impl FileDraft {
    /// Writes a draft and syncs it. A file that an earlier crash left under the draft's name is removed first; a link there is not
    /// followed.
    pub fn write(draft: PathBuf, target: &Path, bytes: &[u8], mode: u32) -> io::Result<Self> {
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let written = (|| {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
            file.write_all(bytes)?;
            file.set_permissions(Permissions::from_mode(mode))?;
            file.sync_all()
        })();
        match written {
            Ok(()) => Ok(Self { draft, target: target.to_owned() }),
            Err(error) => {
                let _ = fs::remove_file(&draft);
                Err(error)
            }
        }
    }

    /// Replaces the file with the draft. When this returns, the new content survives a crash.
    pub fn commit(self) -> io::Result<()> {
        let renamed = fs::rename(&self.draft, &self.target);
        if renamed.is_err() {
            let _ = fs::remove_file(&self.draft);
        }
        renamed.and_then(|()| sync_folder(&self.target))
    }

    /// Creates the file from the draft, unless it exists: then it stays, and this returns false.
    pub fn commit_new(self) -> io::Result<bool> {
        let linked = fs::hard_link(&self.draft, &self.target);
        let _ = fs::remove_file(&self.draft);
        match linked {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            linked => linked.and_then(|()| sync_folder(&self.target)).map(|()| true),
        }
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// The folder of a file. The parent of a bare name is an empty path, which cannot be opened.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
