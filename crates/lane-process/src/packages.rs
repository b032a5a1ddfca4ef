//! Packages that extensions need, of any language: where they are installed, once for each list and never during a turn. `installer`
//! runs the installing programs, confined; `configuration` reads the user's configuration for them.

pub(crate) mod configuration;
pub(crate) mod installer;

#[cfg(test)]
mod installer_tests;
#[cfg(test)]
mod packages_tests;

use std::fs::{self, File, OpenOptions};
use std::future::Future;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::{Progress, Sinks};
use holdfast_contract::problem::{Code, Fault};
use holdfast_untrusted_files::{open_regular, read_text, remove_tree};
use tokio::time::Instant;

/// How long an installation may take.
pub(crate) const INSTALL_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// How long an installation that failed is not tried again. Other requirements are another environment.
const RETRY_PAUSE: Duration = Duration::from_secs(30 * 60);
/// The longest reason of a failure that is read again.
const MAX_FAILURE_BYTES: u64 = 256 << 10;
/// The file beside an environment that says why it could not be created.
const FAILURE_EXTENSION: &str = "failed";
/// The file that marks an environment as complete.
const COMPLETE_MARKER: &str = "whole";

pub(crate) fn failed(what: &str, error: impl std::fmt::Display) -> Fault {
    Fault::new(Code::PackagesFailed, format!("{what}: {error}"))
}

/// Installs these packages into a folder, unless it is complete. The installation has to mark the folder as complete.
pub(crate) async fn install_once(
    folder: &Path,
    packages: Vec<String>,
    (id, sinks): (&ExtensionId, &Sinks),
    install: impl Future<Output = Result<(), Fault>> + Send,
) -> Result<(), Fault> {
    if is_complete(folder) {
        return Ok(());
    }
    let place = folder.parent().unwrap_or(folder);
    fs::create_dir_all(place).map_err(|error| failed(&place.display().to_string(), error))?;
    let _lock = lock(folder.with_extension("lock")).await?;
    if is_complete(folder) {
        return Ok(());
    }
    let failure = folder.with_extension(FAILURE_EXTENSION);
    if let Some(message) = recent_failure(&failure) {
        let told = format!(
            "{message} (not tried again for {} minutes; `holdfast ext restart {id}` tries at once)",
            RETRY_PAUSE.as_secs() / 60
        );
        return Err(Fault::new(Code::PackagesFailed, told));
    }
    let began = Instant::now();
    sinks.progress(id, Progress::Installing { packages: packages.into_iter().collect() });
    // An interrupted installation may have left an incomplete folder.
    let _ = remove_tree(folder);
    if let Err(fault) = install.await {
        let _ = remove_tree(folder);
        // Where it cannot be written, the next start tries again.
        let _ = write_new(&failure, &fault.message);
        return Err(fault);
    }
    let _ = fs::remove_file(&failure);
    sinks.progress(id, Progress::Installed { millis: began.elapsed().as_millis() as u64 });
    Ok(())
}

pub(crate) fn is_complete(folder: &Path) -> bool {
    folder.join(COMPLETE_MARKER).is_file()
}

/// The installer could write the folder: whatever it left under the marker's name is not followed and not written to.
pub(crate) fn mark_complete(folder: &Path, packages: &str) -> Result<(), Fault> {
    write_new(&folder.join(COMPLETE_MARKER), packages)
        .map_err(|error| failed("could not mark the environment as complete", error))
}

/// Why an environment could not be created a short time ago.
fn recent_failure(file: &Path) -> Option<String> {
    let age = fs::metadata(file).ok()?.modified().ok()?.elapsed().unwrap_or_default();
    read_text(file, MAX_FAILURE_BYTES).ok().filter(|_| age < RETRY_PAUSE)
}

/// Writes a file that is new: what has its name is removed, and no link is followed.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

pub(crate) fn text(path: &Path) -> Result<&str, Fault> {
    path.to_str().ok_or_else(|| failed(&path.display().to_string(), "the path is not UTF-8"))
}

/// Locks an environment, so that no other task or process creates it concurrently.
async fn lock(path: PathBuf) -> Result<File, Fault> {
    let locked = tokio::task::spawn_blocking(move || {
        let file = open_regular(OpenOptions::new().write(true).create(true), &path)?;
        file.lock().map(|()| file)
    });
    let locked = locked.await.map_err(|error| failed("could not lock the environment", error))?;
    locked.map_err(|error| failed("could not lock the environment", error))
}
