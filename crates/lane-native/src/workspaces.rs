//! Which folder a call works in: the workspace of its session, or the one that the settings name for sessions without their own.
//! Every call opens its folder and checks it against the home again, because a folder can be moved, replaced or mounted meanwhile.

use std::path::{Path, PathBuf};

use holdfast_contract::message::TurnContext;
use holdfast_contract::problem::{Code, Fault, Problem};

use crate::workspace::Workspace;

/// The workspaces of all sessions. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Workspaces {
    home: PathBuf,
    /// The homes that commands use which name none.
    usual: Vec<PathBuf>,
    /// For sessions without a workspace of their own.
    default: Option<Workspace>,
}

impl Workspaces {
    /// The workspaces of a home's sessions.
    pub fn new(home: impl AsRef<Path>, default: Option<Workspace>) -> Self {
        Self { home: home.as_ref().to_owned(), usual: Vec::new(), default }
    }

    /// None of them overlaps these homes either, which need not exist.
    pub fn apart_from(mut self, usual: &[PathBuf]) -> Self {
        self.usual = usual.to_vec();
        self
    }

    /// Checks a folder as if it were a workspace.
    pub fn check(&self, folder: impl AsRef<Path>) -> Result<Workspace, Problem> {
        Workspace::apart_from(folder, &self.home, &self.usual)
    }

    /// The home folder, which no workspace overlaps.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The folder that a call of this turn works in.
    pub fn of(&self, turn: &TurnContext) -> Result<Workspace, Fault> {
        let Some(own) = &turn.workspace else {
            let missing = || {
                let what = "this session has no workspace: it was not started in a folder that tools may touch, \
                            and the settings name none";
                Fault::new(Code::WorkspaceMissing, what)
            };
            let default = self.default.clone().ok_or_else(missing)?;
            default.check_links()?;
            return Ok(default);
        };
        let found = self.check(&**own).map_err(|problem| problem.to_fault())?;
        // The path was recorded with its links resolved. If it leads elsewhere now, it is another folder than the user started in.
        if found.path() != Path::new(&**own) {
            let what = format!(
                "the workspace {own} leads to {} now, where it did not before",
                found.path().display()
            );
            return Err(Fault::new(Code::WorkspaceRefused, what));
        }
        found.check_links()?;
        Ok(found)
    }
}

/// One folder for all sessions without their own.
impl From<Workspace> for Workspaces {
    fn from(workspace: Workspace) -> Self {
        Self {
            home: workspace.home().to_owned(),
            usual: workspace.usual().to_vec(),
            default: Some(workspace),
        }
    }
}
