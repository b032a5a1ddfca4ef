//! The folders that agents may write: the host takes no program from them, although they may be on its `PATH`, as the `bin` of a
//! project's virtual environment is once that is activated.

use std::collections::BTreeSet;
use std::path::PathBuf;

use holdfast_home::Home;
use holdfast_runtime::recorded_start;
use holdfast_store::Store;
use holdfast_untrusted_files::working_folder;
use parking_lot::Mutex;

use crate::config::ApplicationConfig;

/// The workspaces of a home, past and present.
pub(crate) struct AgentFolders {
    store: Store,
    home: Home,
    /// The current folder, the workspace of the settings, and those of clients.
    known: Mutex<BTreeSet<PathBuf>>,
    /// Those of recorded sessions, read from the log when they are first needed.
    recorded: Mutex<Option<BTreeSet<PathBuf>>>,
}

impl AgentFolders {
    /// With the folder that the program was started in and the one that the settings name.
    pub(crate) fn new(plan: &ApplicationConfig, store: Store, workspace: Option<PathBuf>) -> Self {
        let user = (plan.environment)("HOME").map(PathBuf::from);
        let current = working_folder(&plan.current, user.as_deref());
        let known = Mutex::new(current.into_iter().chain(workspace).collect());
        Self { store, home: plan.home.clone(), known, recorded: Mutex::default() }
    }

    /// A client's workspace, before a session has it.
    pub(crate) fn add(&self, workspace: PathBuf) {
        self.known.lock().insert(workspace);
    }

    /// All of them. A folder with the home in it is left out: no tool may access it.
    pub(crate) fn all(&self) -> Vec<PathBuf> {
        let mut all = self.recorded.lock().get_or_insert_with(|| recorded(&self.store)).clone();
        all.extend(self.known.lock().iter().cloned());
        let home = self.home.canonical();
        all.retain(|folder| !home.starts_with(folder));
        all.into_iter().collect()
    }
}

/// The workspaces of the sessions in a log, as far as it can be read.
fn recorded(store: &Store) -> BTreeSet<PathBuf> {
    let sessions = store.streams().unwrap_or_default().into_iter().filter(|info| info.id.is_session());
    let started = sessions.filter_map(|info| recorded_start(store, &info.id).ok().flatten());
    started.filter_map(|start| Some(PathBuf::from(start["settings"]["workspace"].as_str()?))).collect()
}
