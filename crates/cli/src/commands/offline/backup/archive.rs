//! The entries of a backup, written and read.
//!
//! The home is in use while it is copied: extensions write to files that are being read. A tar archive is a sequence of headers that say
//! how many bytes follow, so a byte too many would be read as a header. What is written here has exactly the size of its header, whatever
//! happens to the file meanwhile. What is read must be plain files and folders with relative paths, each of them once.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Cursor, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use tar::{Builder, EntryType, Header};

/// Bytes of a file that are read before its size is written: a file that has no more is copied as it was read.
const READ_AHEAD: u64 = 4 << 20;

/// Which file this is, by whatever path: device and number.
pub(super) type Identity = (u64, u64);

pub(super) fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// How a file was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copied {
    /// With what was in it.
    Whole,
    /// It became shorter meanwhile. The archive has zeros in place of the rest.
    Shortened,
    /// It was deleted, or replaced by something that is not a plain file, before it could be read.
    Gone,
}

/// Appends a plain file of a folder. No link on the way to it is followed: an extension may put one there at any time, in the place of a
/// folder too.
pub(super) fn append_file<W: Write>(tar: &mut Builder<W>, folder: &File, name: &Path) -> io::Result<Copied> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", name.display()));
    match open(folder, name) {
        Ok(file) => append(tar, &file, || file.metadata(), name).map_err(named),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NXIO) => Ok(Copied::Gone),
        Err(error) => Err(named(error.into())),
    }
}

fn open(folder: &File, name: &Path) -> Result<File, Errno> {
    // What has become a pipe since the folder was listed must not block.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};

        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(folder, name, flags, Mode::empty(), resolve) {
            // A kernel before 5.6 has no such call, and some sandboxes hide it.
            Err(Errno::NOSYS) => {}
            opened => return opened.map(File::from),
        }
    }
    rustix::fs::openat(folder, name, flags, Mode::empty()).map(File::from)
}

/// Appends what a file has, by what `metadata` says of it.
pub(super) fn append<W: Write>(
    tar: &mut Builder<W>,
    mut file: impl Read,
    metadata: impl Fn() -> io::Result<Metadata>,
    name: &Path,
) -> io::Result<Copied> {
    if !metadata()?.is_file() {
        return Ok(Copied::Gone);
    }
    let mut first = Vec::new();
    let read = (&mut file).take(READ_AHEAD).read_to_end(&mut first)? as u64;
    let metadata = metadata()?;
    let size = if read < READ_AHEAD { read } else { metadata.len().max(read) };
    let mut header = Header::new_gnu();
    header.set_metadata(&metadata);
    header.set_size(size);
    let mut exact = Exact { from: Cursor::new(first).chain(file), left: size, shortened: false };
    tar.append_data(&mut header, name, &mut exact)?;
    Ok(if exact.shortened { Copied::Shortened } else { Copied::Whole })
}

/// Gives exactly as many bytes as are left: no more than these, and zeros where there are fewer.
struct Exact<R> {
    from: R,
    left: u64,
    shortened: bool,
}

impl<R: Read> Read for Exact<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let Some(buffer) = buffer.get_mut(..most).filter(|buffer| !buffer.is_empty()) else { return Ok(0) };
        let read = if self.shortened { 0 } else { self.from.read(buffer)? };
        let given = if read == 0 {
            self.shortened = true;
            buffer.fill(0);
            buffer.len()
        } else {
            read
        };
        self.left -= given as u64;
        Ok(given)
    }
}

/// Why an archive was not unpacked.
pub(super) enum Refusal {
    /// What is in it is not a backup. The text says which entry, and why.
    Invalid(String),
    /// A file could not be read or written.
    Io(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Unpacks an archive into an empty folder.
pub(super) fn unpack(archive: impl Read, folder: &Path) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    for entry in tar::Archive::new(archive).entries()? {
        let mut entry = entry?;
        let name = entry.path()?.into_owned();
        let shown = name.display().to_string().escape_debug().to_string();
        let invalid = |why: &str| Refusal::Invalid(format!("`{shown}` {why}"));
        let path = relative(&name).ok_or_else(|| invalid("is not a relative path without `..`"))?;
        if !seen.insert(path.clone()) {
            return Err(invalid("is in it twice"));
        }
        let kind = entry.header().entry_type();
        let target = folder.join(&path);
        match kind {
            EntryType::Directory => make_folder(&target)?,
            EntryType::Regular | EntryType::GNUSparse if !path.as_os_str().is_empty() => {
                if let Some(parent) = target.parent() {
                    make_folder(parent)?;
                }
                let mode = entry.header().mode()? & 0o777;
                let modified = entry.header().mtime()?;
                let mut file = match File::options().write(true).create_new(true).mode(0o600).open(&target) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        return Err(invalid("is in it twice"));
                    }
                    opened => opened?,
                };
                io::copy(&mut entry, &mut file)?;
                file.set_permissions(fs::Permissions::from_mode(mode))?;
                let modified = std::time::UNIX_EPOCH.checked_add(std::time::Duration::from_secs(modified));
                if let Some(modified) = modified {
                    file.set_modified(modified)?;
                }
            }
            _ => return Err(invalid("is neither a plain file nor a folder")),
        }
    }
    Ok(())
}

/// A path with nothing in it but names.
fn relative(name: &Path) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for component in name.components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// Makes a folder for the user alone, with those that it lies in.
fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
