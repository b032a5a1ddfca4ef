//! The files of an activation on disk, copied from the vault.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Bundle, Vault};
use holdfast_untrusted_files::TempFolder;

fn failed(path: &Path, error: impl std::fmt::Display) -> Fault {
    Fault::new(Code::ExtensionGone, format!("{}: {error}", path.display()))
}

/// Writes the files of an activation into a folder of its own. They are written again at every load: an earlier copy may have been
/// changed.
pub fn lay_out(bundle: &Bundle, vault: &dyn Vault, place: &Path) -> Result<TempFolder, Fault> {
    fs::create_dir_all(place).map_err(|error| failed(place, error))?;
    let folder = TempFolder::within(place).map_err(|error| failed(place, error))?;
    for (name, digest) in &bundle.files {
        let path = folder.path().join(name);
        let bytes = vault.file(*digest)?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| failed(parent, error))?;
        }
        fs::write(&path, &bytes).map_err(|error| failed(&path, error))?;
        let runs = bytes.starts_with(b"#!") || bytes.starts_with(b"\x7fELF");
        let mode = if runs { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(|error| failed(&path, error))?;
    }
    Ok(folder)
}
