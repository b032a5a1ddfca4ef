//! Removing what belongs to an extension: its folder or file, and its data.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Problem};
use holdfast_untrusted_files::remove_tree;

use super::Home;
use crate::files;

impl Home {
    /// Removes the folder or file of an extension. A link is removed, and what it points to stays. A folder gets a hidden name first, so
    /// that a part of it is never taken for the extension.
    pub fn remove_extension(&self, path: &Path) -> Result<(), Problem> {
        let failed = |error: io::Error| files::failed(Code::HomeUnavailable, path, "removed", &error);
        if !fs::symlink_metadata(path).map_err(failed)?.is_dir() {
            return fs::remove_file(path).map_err(failed);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let hidden = path.with_file_name(format!(".{name}.removed-{}", std::process::id()));
        fs::rename(path, &hidden).map_err(failed)?;
        remove_tree(&hidden).map_err(|error| files::failed(Code::HomeUnavailable, &hidden, "removed", &error))
    }

    /// Removes the data of an extension, if it has any.
    pub fn remove_data(&self, extension: &ExtensionId) -> Result<(), Problem> {
        let data = self.data(extension);
        match remove_tree(&data) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(files::failed(Code::HomeUnavailable, &data, "removed", &error))
            }
            _ => Ok(()),
        }
    }
}
