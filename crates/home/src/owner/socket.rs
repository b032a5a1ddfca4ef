//! Where the owner listens. A socket's path has a length that the system limits, so a home deep in the tree gets a short one elsewhere, in
//! a private folder, and writes down where.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use holdfast_contract::digest::Digest;
use holdfast_contract::problem::{Code, Problem};
use rustix::process::geteuid;

use crate::files::{self, OTHERS};
use crate::home::Home;

/// The most bytes that a socket's path has on every system we run on; Linux allows four more.
pub(crate) const MAX_SOCKET_PATH_BYTES: usize = 103;

/// The largest record of a socket's path that is read.
const MAX_RECORD_BYTES: u64 = 4096;

impl Home {
    /// Where the owner of the home listens.
    pub fn control_socket(&self) -> PathBuf {
        let usual = self.usual_socket();
        if fits(&usual) {
            return usual;
        }
        let recorded = holdfast_untrusted_files::read_text(&self.socket_record(), MAX_RECORD_BYTES)
            .ok()
            .map(PathBuf::from);
        recorded.filter(|path| path.is_absolute() && fits(path)).unwrap_or_else(|| self.short_socket())
    }

    pub(crate) fn usual_socket(&self) -> PathBuf {
        self.root().join("control.sock")
    }

    /// The file with the path of a socket outside the home.
    pub(crate) fn socket_record(&self) -> PathBuf {
        self.root().join("control.path")
    }

    /// A short path that is the home's alone.
    fn short_socket(&self) -> PathBuf {
        let digest = Digest::of(self.canonical().as_os_str().as_bytes()).to_string();
        let name = format!("holdfast-{}/{}.sock", geteuid().as_raw(), &digest[..16]);
        let mut places = self.surroundings.socket_folders.iter().map(|folder| folder.join(&name));
        places.find(|path| fits(path)).unwrap_or_else(|| Path::new("/tmp").join(&name))
    }

    /// For the new owner: removes the socket of an owner that is gone, and makes the place for the next.
    pub(crate) fn clear_socket(&self) -> Result<(), Problem> {
        remove(&self.control_socket())?;
        if fits(&self.usual_socket()) {
            return Ok(());
        }
        let socket = self.short_socket();
        if let Some(folder) = socket.parent() {
            private_folder(folder)?;
        }
        remove(&socket)?;
        files::replace(&self.socket_record(), &socket.to_string_lossy())
    }
}

pub(crate) fn fits(path: &Path) -> bool {
    path.as_os_str().len() <= MAX_SOCKET_PATH_BYTES
}

fn remove(socket: &Path) -> Result<(), Problem> {
    match fs::remove_file(socket) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(files::failed(Code::HomeUnavailable, socket, "removed", &error))
        }
        _ => Ok(()),
    }
}

/// Makes a folder that no other user can enter. One that is there must be ours, and no link: where everybody may write, somebody else may
/// have been first.
fn private_folder(path: &Path) -> Result<(), Problem> {
    files::make_folder(path)?;
    let found = fs::symlink_metadata(path)
        .map_err(|error| files::failed(Code::HomeUnavailable, path, "read", &error))?;
    let private = found.permissions().mode() & OTHERS == 0;
    if found.is_dir() && found.uid() == geteuid().as_raw() && private {
        return Ok(());
    }
    let what = format!("{} is not a folder of yours alone", path.display());
    let help = "Remove it if you know whose it is, or set XDG_RUNTIME_DIR to a folder of your own.";
    Err(Problem::in_file(Code::HomeUnavailable, path, what).help(help))
}
