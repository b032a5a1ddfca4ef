//! Reads the files of one extension: regular files of its own folder, bounded one by one and in all.

use std::path::Path;

use holdfast_contract::problem::{Code, Problem};
use holdfast_untrusted_files::{FileError, read};

/// The most bytes that the files of an extension have together: all of them are in memory at once.
const MAX_EXTENSION_BYTES: u64 = 256 << 20;
/// The largest manifest.
const MAX_MANIFEST_BYTES: u64 = 16 << 20;

/// Reads the files of an extension, and counts their bytes.
pub(crate) struct ExtensionReader {
    left: u64,
}

impl Default for ExtensionReader {
    fn default() -> Self {
        Self { left: MAX_EXTENSION_BYTES }
    }
}

impl ExtensionReader {
    /// The bytes of the manifest.
    pub(crate) fn manifest(&mut self, folder: &Path, file: &Path) -> Result<Vec<u8>, Problem> {
        let unreadable = |why: String| {
            let problem = Problem::in_file(
                Code::ManifestUnreadable,
                file,
                format!("the manifest cannot be read: {why}"),
            );
            problem.help("An extension is a folder with a `manifest.yaml`; `holdfast ext new` makes one.")
        };
        let own = own_file(folder, file).map_err(|error| unreadable(error.to_string()))?;
        let own = own.ok_or_else(|| unreadable("it is a link to a file elsewhere".to_owned()))?;
        let bytes = read(&own, MAX_MANIFEST_BYTES).map_err(|error| unreadable(error.to_string()))?;
        self.left = self.left.saturating_sub(bytes.len() as u64);
        Ok(bytes)
    }

    /// The bytes of a file of the extension's own: not one elsewhere that a link or `..` leads to.
    pub(crate) fn read(&mut self, folder: &Path, name: &str) -> Result<Vec<u8>, Problem> {
        let path = folder.join(name);
        let invalid = |what: String| Problem::in_file(Code::ComponentInvalid, &path, what);
        let unreadable = |error: std::io::Error| {
            invalid(format!("`{name}` cannot be read: {error}")).help("`holdfast ext build` makes it.")
        };
        let own = own_file(folder, &path).map_err(unreadable)?;
        let own = own.ok_or_else(|| invalid(format!("`{name}` is not a file in the extension's folder")))?;
        let bytes = read(&own, self.left).map_err(|error| match error {
            FileError::Io(error) => unreadable(error),
            FileError::Irregular(kind) => invalid(format!("`{name}` is {kind}, not a file")),
            FileError::TooLarge { .. } => {
                let what = format!(
                    "the extension has more than {MAX_EXTENSION_BYTES} bytes; `{name}` does not fit any more"
                );
                invalid(what).help("Leave out what it does not need to run.")
            }
        })?;
        self.left = self.left.saturating_sub(bytes.len() as u64);
        Ok(bytes)
    }
}

/// Where a file is, with all links resolved; nothing if that is outside of the folder.
fn own_file(folder: &Path, file: &Path) -> std::io::Result<Option<std::path::PathBuf>> {
    let (inside, own) = (folder.canonicalize()?, file.canonicalize()?);
    Ok(own.starts_with(inside).then_some(own))
}
