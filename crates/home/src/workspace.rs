//! The folder that file tools and the shell may access. An agent that could write into the home could grant itself anything, so
//! neither may contain the other.

use std::path::{Path, PathBuf};

use holdfast_contract::manifest::DECIDING_FOLDERS;
use holdfast_contract::problem::{Code, Problem, Severity};
use holdfast_untrusted_files::{linked_places, places};

use crate::files;
use crate::home::{Home, canonical};
use crate::settings::{LoadedSettings, Settings};

impl Settings {
    /// The workspace, with links resolved. If it overlaps the home, that is an error if the settings name it, and a warning
    /// without a workspace if it is only the current folder: then everything but files and the shell still works.
    pub fn workspace(&self, home: &Home, current: &Path) -> Result<PathBuf, Problem> {
        let named = self.workspace.as_deref();
        let folder = named.map_or_else(|| current.to_owned(), |text| current.join(expand(text, home)));
        let folder = canonical(&folder);
        // What decides in the home may be linked from elsewhere, and counts where it really is.
        let homes = std::iter::once(home.root()).chain(home.usual().iter().map(PathBuf::as_path));
        let places =
            homes.flat_map(|home| places(home).into_iter().chain(linked_places(home, DECIDING_FOLDERS)));
        let overlaps = |place: &PathBuf| folder.starts_with(place) || place.starts_with(&folder);
        if let Some(place) = places.into_iter().find(overlaps) {
            let what = format!("the workspace {} and the home {} overlap", folder.display(), place.display());
            let found = Problem::new(Code::WorkspaceOverlap, what);
            return Err(match named {
                Some(_) => found.at(files::location(&home.settings_file(), "workspace")),
                None => found
                    .with(Severity::Warning)
                    .help("Start in another folder, or name one with `workspace:` in `config/settings.yaml`; until then there are no file tools."),
            });
        }
        if named.is_some() && !folder.is_dir() {
            let what = format!("the workspace {} is not a folder", folder.display());
            let found = Problem::new(Code::SettingsInvalid, what).help("Make it, or name another.");
            return Err(found.at(files::location(&home.settings_file(), "workspace")));
        }
        Ok(folder)
    }
}

impl LoadedSettings {
    /// The workspace, as [`Settings::workspace`] says, with the line that names it.
    pub fn workspace(&self, home: &Home, current: &Path) -> Result<PathBuf, Problem> {
        self.settings.workspace(home, current).map_err(|problem| match (&self.source, &problem.location) {
            (Some(source), Some(_)) => problem.at(source.locate("workspace")),
            _ => problem,
        })
    }
}

/// Expands `~` to the user's home folder.
fn expand(text: &str, home: &Home) -> PathBuf {
    let user = home.surroundings.user.as_ref();
    match (text.strip_prefix('~'), user) {
        (Some(""), Some(user)) => user.clone(),
        (Some(rest), Some(user)) if rest.starts_with('/') => user.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(text),
    }
}
