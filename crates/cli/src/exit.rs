//! How a command ends.

use std::process::ExitCode;

/// How a command ends, other than with an error of usage or configuration.
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
    /// The reader of its output has closed it: the code that a shell gives to a program that ends for this reason.
    ReaderGone,
    /// It wants to be started again.
    Restart,
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
            Exit::ReaderGone => 141,
            Exit::Restart => 75,
        })
    }
}
