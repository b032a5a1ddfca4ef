//! The path of the home and the paths in it. Nothing is created or read here. `home/permissions.rs` checks whether it may be trusted,
//! `home/kinds.rs` what in it is neither a file nor a folder.

mod kinds;
mod permissions;
mod removal;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Problem};

/// A home folder. It may not exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
    pub(crate) surroundings: Surroundings,
}

/// What the home needs to know about the machine, taken from the environment once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// Where sockets with a short path can be, the best place first.
    pub(crate) socket_folders: Vec<PathBuf>,
    /// The user's home folder, for `~`.
    pub(crate) user: Option<PathBuf>,
    /// The homes that a command uses which names none: of `HOLDFAST_HOME`, and in the user's data folder.
    pub(crate) usual: Vec<PathBuf>,
}

impl Home {
    /// The home: as asked for, else `HOLDFAST_HOME`, else `holdfast` in the user's data folder. The current folder decides nothing: it may hold
    /// what others wrote, and a home grants permissions.
    pub fn locate(asked: Option<PathBuf>, env: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, Problem> {
        Self::locate_from(&env::current_dir().unwrap_or_default(), asked, env)
    }

    /// The same, with paths that are relative taken from another folder than the current one.
    pub(crate) fn locate_from(
        current: &Path,
        asked: Option<PathBuf>,
        env: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, Problem> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let absolute = |name: &str| set(name).filter(|folder| folder.is_absolute());
        let user = absolute("HOME");
        let data = || absolute("XDG_DATA_HOME").or_else(|| Some(user.as_ref()?.join(".local/share")));
        if asked.as_ref().is_some_and(|folder| folder.as_os_str().is_empty()) {
            let what = "--home is empty, perhaps because a variable is not set";
            return Err(Problem::new(Code::HomeUnavailable, what).help("Name a folder, or leave --home out."));
        }
        let usual: Vec<PathBuf> =
            set("HOLDFAST_HOME").into_iter().chain(data().map(|data| data.join("holdfast"))).collect();
        let root = asked.or_else(|| usual.first().cloned()).ok_or_else(|| {
            let what = "no home is named, and neither XDG_DATA_HOME nor HOME is an absolute path";
            Problem::new(Code::HomeUnavailable, what).help("Name the home with --home or HOLDFAST_HOME.")
        })?;
        let short = Some(PathBuf::from("/tmp"));
        let socket_folders =
            [absolute("XDG_RUNTIME_DIR"), absolute("TMPDIR"), short].into_iter().flatten().collect();
        let usual = usual.into_iter().map(|home| current.join(home)).collect();
        Ok(Self { root: current.join(root), surroundings: Surroundings { socket_folders, user, usual } })
    }

    /// The folder itself, as an absolute path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The homes that commands use which name none. They need not exist, and no workspace overlaps them either: the next command would
    /// follow what an agent writes there.
    pub fn usual(&self) -> &[PathBuf] {
        &self.surroundings.usual
    }

    /// The folder with links resolved, as far as it exists.
    pub fn canonical(&self) -> PathBuf {
        canonical(&self.root)
    }

    /// Frames, bus and sessions.
    pub fn database(&self) -> PathBuf {
        self.root.join("holdfast.db")
    }

    /// What the user sets.
    pub fn settings_file(&self) -> PathBuf {
        self.config().join("settings.yaml")
    }

    /// What the user allows.
    pub fn policy_file(&self) -> PathBuf {
        self.config().join("policy.yaml")
    }

    /// Keys and other secrets.
    pub fn env_file(&self) -> PathBuf {
        self.root.join(".env")
    }

    /// Instructions for agents.
    pub fn prompts(&self) -> PathBuf {
        self.root.join("prompts")
    }

    /// One folder for each extension.
    pub fn extensions(&self) -> PathBuf {
        self.root.join("extensions")
    }

    /// The folder of the extensions' private folders.
    pub fn all_data(&self) -> PathBuf {
        self.root.join("data")
    }

    /// The private folder of an extension.
    pub fn data(&self, id: &ExtensionId) -> PathBuf {
        self.all_data().join(id.as_str())
    }

    /// Files that are made from the content of extensions, such as compiled components: a cache.
    pub fn generations(&self) -> PathBuf {
        self.root.join("generations")
    }

    /// What was approved of each MCP server.
    pub fn mcp(&self) -> PathBuf {
        self.root.join("mcp")
    }

    /// The packages that extensions in Python need, an environment for each list of them.
    pub fn environments(&self) -> PathBuf {
        self.root.join("environments")
    }

    /// The file that asks the supervisor to start the owner again.
    pub fn restart_flag(&self) -> PathBuf {
        self.root().join(".restart_requested")
    }

    /// Whether the folder is there.
    pub fn exists(&self) -> bool {
        self.root.is_dir()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.root.join("config")
    }

    pub(crate) fn lock_file(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// Every folder of a home, parents first.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let inside = [
            "config",
            "prompts",
            "extensions",
            "extensions/tools",
            "extensions/channels",
            "data",
            "generations",
        ];
        std::iter::once(self.root.clone()).chain(inside.map(|name| self.root.join(name))).collect()
    }
}

/// A path with the links resolved of as much of it as exists.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let (Ok(found), Ok(rest)) = (above.canonicalize(), path.strip_prefix(above)) {
            return if rest.as_os_str().is_empty() { found } else { found.join(rest) };
        }
    }
    path.to_owned()
}
