//! What both machines have in common.

use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::serde::{Deserialize, Serialize};

/// How far a stream has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(crate) enum Phase {
    #[default]
    New,
    Running,
    Stopping,
    Stopped,
}

/// Whether a fact fits. One that does not has changed nothing.
pub(crate) type Accepted = Result<(), Fault>;

/// The answer to a fact that is not awaited.
pub(crate) fn unexpected<T>(message: &str) -> Result<T, Fault> {
    Err(Fault::new(Code::TurnUnexpected, message))
}
