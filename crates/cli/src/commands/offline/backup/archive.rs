//! The entries of a backup, written and read.
//!
//! The home is in use while it is copied: extensions write to files that are being read. A tar archive is a sequence of headers that say
//! how many bytes follow, so a byte too many would be read as a header. What is written here has exactly the size of its header, whatever
//! happens to the file meanwhile. What is read must be plain files and folders with relative paths, each of them once, and exactly what the
//! manifest at the end of the archive lists.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use holdfast_contract::digest::Digest;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use tar::{Builder, EntryType, Header};

use crate::commands::offline::backup::manifest::{MANIFEST, Manifest, Member, key};

/// Bytes of a file that are read before its size is written: a file that has no more is copied as it was read.
const READ_AHEAD: u64 = 4 << 20;
/// The largest manifest that is read: about a million files.
const MAX_MANIFEST_BYTES: u64 = 256 << 20;
const COPY_BUFFER: usize = 128 << 10;
/// The unit in which the system counts what a file takes.
const BLOCK_BYTES: u64 = 512;
/// How much longer than what they take on the disk the sparse files of a home may be, all of them together: an extension can give any
/// number of files any length, and its quota counts what they take.
const MAX_HOLE_BYTES: u64 = 128 << 20;
/// How often longer than what it takes on the disk a file has to be to count as sparse: some file systems compress.
const SPARSE_FACTOR: u64 = 8;
/// What is written to the disk between two looks at how much room it has, and the room that is left to others.
const ROOM_CHECK_BYTES: u64 = 16 << 20;
const MIN_FREE_BYTES: u64 = 64 << 20;
/// Zeros that are read from an archive, the length of a path, and the length of all paths together.
const MAX_ZERO_BYTES: u64 = 64 << 30;
const MAX_PATH_BYTES: u64 = 64 << 10;
const MAX_PATHS_BYTES: u64 = MAX_MANIFEST_BYTES;
/// The zeros that are written as a hole.
const HOLE_BYTES: usize = 4 << 10;
/// The permissions of a file that are kept.
const PERMISSIONS: u32 = 0o777;

/// Which file this is, by whatever path: device and number.
pub(super) type Identity = (u64, u64);

pub(super) fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// How a file was copied.
#[derive(Debug)]
pub(super) enum Copied {
    /// With what was in it.
    Whole,
    /// It became shorter or unreadable meanwhile. The archive has zeros in place of the rest.
    Shortened,
    /// It was deleted, or replaced by something that is not a plain file, before it could be read.
    Gone,
    /// It cannot be read.
    Unreadable(io::Error),
}

/// An archive that is being written, and what it has so far.
pub(super) struct ArchiveWriter<W: Write> {
    tar: Builder<W>,
    files: BTreeMap<String, Member>,
    /// How much longer than what they take on the disk further files may be.
    hole_bytes: u64,
}

impl<W: Write> ArchiveWriter<W> {
    pub(super) fn new(to: W) -> Self {
        Self { tar: Builder::new(to), files: BTreeMap::new(), hole_bytes: MAX_HOLE_BYTES }
    }

    /// Appends a plain file of a folder, under a name. No link on the way to it is followed: an extension may put one there at any time, in the
    /// place of a folder too.
    pub(super) fn append_file(&mut self, folder: &File, inner: &Path, name: &Path) -> io::Result<Copied> {
        match open(folder, inner) {
            Ok(file) => self.append(&file, || file.metadata(), name),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NXIO) => Ok(Copied::Gone),
            Err(error) => Ok(Copied::Unreadable(error.into())),
        }
    }

    /// Appends what a file has, by what `metadata` says of it. Only an error of the archive itself is an error.
    pub(super) fn append(
        &mut self,
        mut file: impl Read,
        metadata: impl Fn() -> io::Result<Metadata>,
        name: &Path,
    ) -> io::Result<Copied> {
        let mut first = Vec::new();
        let (read, metadata) = match begin(&mut file, &metadata, &mut first) {
            Ok(Some(begun)) => begun,
            Ok(None) => return Ok(Copied::Gone),
            Err(error) => return Ok(Copied::Unreadable(error)),
        };
        let size = if read < READ_AHEAD { read } else { metadata.len().max(read) };
        let taken = metadata.blocks().saturating_mul(BLOCK_BYTES);
        if size / SPARSE_FACTOR > taken + HOLE_BYTES as u64 {
            let Some(left) = self.hole_bytes.checked_sub(size - taken) else {
                let what = format!("it is sparse: {size} bytes long, of which {taken} are on the disk");
                return Ok(Copied::Unreadable(io::Error::other(what)));
            };
            self.hole_bytes = left;
        }
        let mut header = Header::new_gnu();
        header.set_metadata(&metadata);
        header.set_size(size);
        let mut exact = Exact {
            from: Cursor::new(first).chain(file),
            left: size,
            shortened: false,
            hasher: blake3::Hasher::new(),
        };
        self.tar.append_data(&mut header, name, &mut exact)?;
        let member =
            Member { bytes: size, mode: metadata.mode() & PERMISSIONS, digest: digest(&exact.hasher) };
        self.files.insert(key(name), member);
        Ok(if exact.shortened { Copied::Shortened } else { Copied::Whole })
    }

    /// Ends the archive with its manifest.
    pub(super) fn finish(mut self, skipped: Vec<String>) -> io::Result<W> {
        let manifest = Manifest::new(self.files, skipped).write()?;
        let mut header = Header::new_gnu();
        header.set_mode(0o600);
        header.set_size(manifest.len() as u64);
        self.tar.append_data(&mut header, MANIFEST, manifest.as_slice())?;
        self.tar.into_inner()
    }
}

/// Reads the beginning of a plain file: how much of it there is, and what it is then.
fn begin(
    file: &mut impl Read,
    metadata: &impl Fn() -> io::Result<Metadata>,
    first: &mut Vec<u8>,
) -> io::Result<Option<(u64, Metadata)>> {
    if !metadata()?.is_file() {
        return Ok(None);
    }
    let read = file.take(READ_AHEAD).read_to_end(first)? as u64;
    Ok(Some((read, metadata()?)))
}

fn digest(hasher: &blake3::Hasher) -> Digest {
    Digest::from_bytes(*hasher.finalize().as_bytes())
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

/// Gives exactly as many bytes as are left, and hashes them: no more than these, and zeros where there are fewer or where they cannot be
/// read.
struct Exact<R> {
    from: R,
    left: u64,
    shortened: bool,
    hasher: blake3::Hasher,
}

impl<R: Read> Read for Exact<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let Some(buffer) = buffer.get_mut(..most).filter(|buffer| !buffer.is_empty()) else { return Ok(0) };
        let read = match self.from.read(buffer) {
            _ if self.shortened => 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            read => read.unwrap_or(0),
        };
        let given = if read == 0 {
            self.shortened = true;
            buffer.fill(0);
            buffer.len()
        } else {
            read
        };
        self.left -= given as u64;
        self.hasher.update(buffer.get(..given).unwrap_or_default());
        Ok(given)
    }
}

/// Why an archive was not unpacked.
pub(super) enum Refusal {
    /// What is in it is not a backup. The text says which entry, and why.
    Invalid(String),
    /// It is a backup, but not what was written.
    Damaged(String),
    /// A file could not be written.
    Io(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn damaged(error: io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Refusal::Damaged(format!("it ends too early ({error})")),
        _ => Refusal::Damaged(format!("it cannot be read to its end ({error})")),
    }
}

/// Unpacks an archive into an empty folder, and checks every byte of it. Returns the manifest.
pub(super) fn unpack(archive: impl Read, folder: &Path) -> Result<Manifest, Refusal> {
    unpack_within(archive, folder, UnpackLimits::new(folder)?)
}

/// The same within other limits.
pub(super) fn unpack_within(
    archive: impl Read,
    folder: &Path,
    mut room: UnpackLimits,
) -> Result<Manifest, Refusal> {
    let mut archive = tar::Archive::new(archive);
    let mut seen = HashSet::new();
    let mut found = BTreeMap::new();
    let (mut manifest, mut long_name) = (None, None);
    // Raw, because the reader of extensions of the format would hold them in memory whatever their size.
    for entry in archive.entries().map_err(damaged)?.raw(true) {
        let mut entry = entry.map_err(damaged)?;
        if entry.header().entry_type() == EntryType::GNULongName {
            long_name = Some(read_path(&mut entry)?);
            continue;
        }
        let name = match long_name.take() {
            Some(name) => name,
            None => entry.path().map_err(damaged)?.into_owned(),
        };
        room.count_path(&name)?;
        let shown = name.display().to_string().escape_debug().to_string();
        let invalid = |why: &str| Refusal::Invalid(format!("`{shown}` {why}"));
        let path = relative(&name).ok_or_else(|| invalid("is not a relative path without `..`"))?;
        if !seen.insert(path.clone()) {
            return Err(invalid("is in it twice"));
        }
        if manifest.is_some() {
            return Err(invalid("comes after the manifest"));
        }
        let target = folder.join(&path);
        match entry.header().entry_type() {
            EntryType::Regular if path == Path::new(MANIFEST) => {
                let mut bytes = Vec::new();
                (&mut entry).take(MAX_MANIFEST_BYTES).read_to_end(&mut bytes).map_err(damaged)?;
                let read = Manifest::read(&bytes);
                manifest = Some(read.map_err(|why| Refusal::Damaged(format!("the manifest: {why}")))?);
            }
            EntryType::Directory => make_folder(&target)?,
            EntryType::Regular if !path.as_os_str().is_empty() => {
                if let Some(parent) = target.parent() {
                    make_folder(parent)?;
                }
                let mode = entry.header().mode().map_err(damaged)? & PERMISSIONS;
                let modified = entry.header().mtime().map_err(damaged)?;
                let file = match File::options().write(true).create_new(true).mode(0o600).open(&target) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        return Err(invalid("is in it twice"));
                    }
                    opened => opened?,
                };
                let (bytes, digest) = copy(&mut entry, &file, &mut room)?;
                file.set_permissions(fs::Permissions::from_mode(mode))?;
                let modified = std::time::UNIX_EPOCH.checked_add(std::time::Duration::from_secs(modified));
                if let Some(modified) = modified {
                    file.set_modified(modified)?;
                }
                found.insert(key(&path), Member { bytes, mode, digest });
            }
            _ => return Err(invalid("is neither a plain file nor a folder")),
        }
    }
    rest_is_empty(&mut archive.into_inner())?;
    let manifest = manifest.ok_or_else(|| {
        let what = "it has no manifest with checksums: it was cut, or an older version has written it";
        Refusal::Damaged(what.to_owned())
    })?;
    match manifest.difference(&found) {
        None => Ok(manifest),
        Some(difference) => Err(Refusal::Damaged(difference)),
    }
}

/// What unpacking may take: an archive of a few bytes can stand for any number of them.
pub(super) struct UnpackLimits {
    folder: File,
    /// What is left free on the disk.
    pub(super) min_free: u64,
    /// Zeros and bytes of paths that may still come.
    pub(super) zero_bytes: u64,
    pub(super) path_bytes: u64,
    /// What has been written since the disk was looked at.
    unchecked: u64,
}

impl UnpackLimits {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            folder: File::open(folder)?,
            min_free: MIN_FREE_BYTES,
            zero_bytes: MAX_ZERO_BYTES,
            path_bytes: MAX_PATHS_BYTES,
            // So that the first bytes have it looked at.
            unchecked: ROOM_CHECK_BYTES,
        })
    }

    /// Counts what was written. An error if the disk has too little room left.
    fn count_written(&mut self, bytes: u64) -> io::Result<()> {
        self.unchecked = self.unchecked.saturating_add(bytes);
        if self.unchecked < ROOM_CHECK_BYTES {
            return Ok(());
        }
        self.unchecked = 0;
        let disk = rustix::fs::fstatvfs(&self.folder)?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if free < self.min_free {
            return Err(io::Error::other(format!("the disk has only {free} bytes left")));
        }
        Ok(())
    }

    fn count_zeros(&mut self, bytes: u64) -> Result<(), Refusal> {
        let left = self.zero_bytes.checked_sub(bytes);
        self.zero_bytes =
            left.ok_or_else(|| Refusal::Invalid("it has more zeros than any home has".to_owned()))?;
        Ok(())
    }

    fn count_path(&mut self, path: &Path) -> Result<(), Refusal> {
        // An entry takes a block and an inode, however short its name is.
        self.count_written(BLOCK_BYTES)?;
        let left = self.path_bytes.checked_sub(path.as_os_str().len() as u64 + 1);
        self.path_bytes = left.ok_or_else(|| Refusal::Invalid("it has too many files".to_owned()))?;
        Ok(())
    }
}

/// A path that is too long for a header, as the entry before the file's has it.
fn read_path(entry: &mut impl Read) -> Result<PathBuf, Refusal> {
    let mut bytes = Vec::new();
    entry.take(MAX_PATH_BYTES + 1).read_to_end(&mut bytes).map_err(damaged)?;
    if bytes.len() as u64 > MAX_PATH_BYTES {
        return Err(Refusal::Invalid(format!("a path in it has more than {MAX_PATH_BYTES} bytes")));
    }
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    Ok(PathBuf::from(OsString::from_vec(bytes)))
}

/// Copies an entry's bytes; returns how many, and their digest. Zeros become holes.
fn copy(entry: &mut impl Read, mut file: &File, limits: &mut UnpackLimits) -> Result<(u64, Digest), Refusal> {
    let (mut bytes, mut hasher) = (0, blake3::Hasher::new());
    let mut buffer = vec![0; COPY_BUFFER];
    loop {
        let read = match entry.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.map_err(damaged)?,
        };
        let Some(part) = buffer.get(..read).filter(|part| !part.is_empty()) else {
            // The file may end in a hole.
            file.set_len(bytes)?;
            return Ok((bytes, digest(&hasher)));
        };
        hasher.update(part);
        let mut rest = part;
        while !rest.is_empty() {
            let zeros = begins_with_zeros(rest);
            let blocks = rest.chunks(HOLE_BYTES).take_while(|block| begins_with_zeros(block) == zeros);
            let (run, after) = rest.split_at(blocks.map(<[u8]>::len).sum());
            if zeros {
                limits.count_zeros(run.len() as u64)?;
                file.seek(SeekFrom::Current(run.len() as i64))?;
            } else {
                limits.count_written(run.len() as u64)?;
                file.write_all(run)?;
            }
            rest = after;
        }
        bytes += read as u64;
    }
}

/// Whether the first block is zeros only.
fn begins_with_zeros(bytes: &[u8]) -> bool {
    bytes.iter().take(HOLE_BYTES).all(|byte| *byte == 0)
}

/// After the last entry come zeros only. Reading them also makes the decoder compare its checksum.
fn rest_is_empty(rest: &mut impl Read) -> Result<(), Refusal> {
    let mut buffer = vec![0; COPY_BUFFER];
    loop {
        let read = rest.read(&mut buffer).map_err(damaged)?;
        match buffer.get(..read) {
            None | Some([]) => return Ok(()),
            Some(part) if part.iter().all(|byte| *byte == 0) => {}
            Some(_) => return Err(Refusal::Damaged("there is something after its end".to_owned())),
        }
    }
}

/// A path with nothing in it but names.
pub(super) fn relative(name: &Path) -> Option<PathBuf> {
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
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
