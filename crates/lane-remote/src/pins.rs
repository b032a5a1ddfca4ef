//! The definitions of a remote's tools that were accepted: those of the first contact, or those that the settings name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use holdfast_contract::digest::Digest;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::protocol::ToolSheet;
use holdfast_contract::remote::RemoteWelcome;

use crate::lane::RemoteTarget;

/// The most bytes that a file of pins has.
const MAX_BYTES: u64 = 1 << 20;

/// Compares what is offered with what was accepted. Definitions that were not accepted are an error that names them.
pub(crate) fn check(folder: &Path, target: &RemoteTarget, offered: &RemoteWelcome) -> Result<(), Fault> {
    let file = folder.join("definitions.json");
    let definitions = offered.definitions();
    let pins: BTreeMap<&str, Digest> =
        offered.tools.iter().map(|tool| (tool.name.as_str(), definition(tool))).collect();
    let accepted = match holdfast_untrusted_files::read(&file, MAX_BYTES) {
        Ok(bytes) => Some(serde_json::from_slice::<BTreeMap<String, Digest>>(&bytes).unwrap_or_default()),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(unpinned(&file, error)),
    };
    if let Some(accepted) =
        accepted.filter(|_| target.definitions.as_deref() != Some(&*definitions.to_string()))
    {
        let other = |(name, pin): &(&&str, &Digest)| accepted.get(**name) != Some(*pin);
        let changed: Vec<String> = pins.iter().filter(other).map(|(name, _)| format!("`{name}`")).collect();
        if changed.is_empty() {
            return Ok(());
        }
        let message = format!(
            "the remote `{}` has changed the definition of {} since it was accepted; to accept what it offers now, \
             set `remotes.{}.definitions: {definitions}`",
            target.name,
            changed.join(", "),
            target.name
        );
        return Err(Fault::new(Code::RemoteChanged, message));
    }
    let text = serde_json::to_vec_pretty(&pins).unwrap_or_default();
    fs::create_dir_all(folder).map_err(|error| unpinned(folder, error))?;
    holdfast_atomic_file::replace(&file, &text, 0o600).map_err(|error| unpinned(&file, error))
}

fn definition(tool: &ToolSheet) -> Digest {
    Digest::of_json(tool).unwrap_or_default()
}

fn unpinned(path: &Path, error: impl std::fmt::Display) -> Fault {
    let path: PathBuf = path.to_owned();
    Fault::new(Code::RemoteChanged, format!("{} cannot be used: {error}", path.display()))
}
