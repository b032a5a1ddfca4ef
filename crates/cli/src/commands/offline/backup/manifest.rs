//! The manifest of a backup: the last entry of the archive, with the size and the digest of every file before it.
//!
//! A manifest carries a digest of itself, so one changed byte anywhere in the archive is noticed: in a file, in the manifest, or in
//! which files there are. It protects against damage, not against someone who writes a backup of their own.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use holdfast_contract::digest::Digest;
use serde::{Deserialize, Serialize};

/// The manifest's name in the archive.
pub(super) const MANIFEST: &str = "holdfast-backup.json";
/// The format that this version writes and reads.
const FORMAT: u32 = 1;

/// What an archive has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    format: u32,
    /// Its files, by [`key`].
    pub(super) files: BTreeMap<String, Member>,
    /// Files of the home that could not be read, as they are shown to a person.
    pub(super) skipped: Vec<String>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Member {
    pub(super) bytes: u64,
    pub(super) mode: u32,
    pub(super) digest: Digest,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    digest: Digest,
    manifest: Manifest,
}

impl Manifest {
    pub(super) fn new(files: BTreeMap<String, Member>, skipped: Vec<String>) -> Self {
        Self { format: FORMAT, files, skipped }
    }

    /// As it is written.
    pub(super) fn write(self) -> std::io::Result<Vec<u8>> {
        let digest = Digest::of_json(&self).map_err(std::io::Error::other)?;
        Ok(serde_json::to_vec(&Sealed { digest, manifest: self })?)
    }

    /// Reads one back; the error says what is wrong with it.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let sealed: Sealed = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        match Digest::of_json(&sealed.manifest) {
            Ok(digest) if digest == sealed.digest => {}
            _ => return Err("it does not have the digest that was written".to_owned()),
        }
        match sealed.manifest.format {
            FORMAT => Ok(sealed.manifest),
            other => Err(format!("it has format {other}; this version reads format {FORMAT}")),
        }
    }

    /// What the archive has instead of what it should have: the first difference.
    pub(super) fn difference(&self, found: &BTreeMap<String, Member>) -> Option<String> {
        for (name, expected) in &self.files {
            match found.get(name) {
                None => return Some(format!("`{name}` is missing")),
                Some(found) if found == expected => {}
                Some(found) if found.bytes != expected.bytes => {
                    return Some(format!("`{name}` has {} bytes instead of {}", found.bytes, expected.bytes));
                }
                Some(found) if found.digest != expected.digest => {
                    return Some(format!("`{name}` is not what was copied: its digest differs"));
                }
                Some(_) => return Some(format!("`{name}` has another mode than the file that was copied")),
            }
        }
        let added = found.keys().find(|name| !self.files.contains_key(*name));
        added.map(|name| format!("`{name}` was added"))
    }
}

/// A path as a key. Two paths never have the same one, whatever bytes they consist of.
pub(super) fn key(path: &Path) -> String {
    match path.to_str() {
        Some(text) if !text.contains('\\') && !text.contains(char::is_control) => text.to_owned(),
        _ => path.as_os_str().as_bytes().escape_ascii().to_string(),
    }
}
