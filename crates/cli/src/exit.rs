//! How a command ends.

use std::process::ExitCode;

/// How a command ends, where it is no error of usage or configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// The thing itself failed.
    Failed,
    /// The policy denied it.
    Denied,
    /// It was interrupted.
    Interrupted,
    /// It wants to be started again.
    Again,
}

impl From<bool> for Exit {
    fn from(done: bool) -> Self {
        if done { Exit::Done } else { Exit::Failed }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Denied => 3,
            Exit::Interrupted => 130,
            Exit::Again => 75,
        })
    }
}
