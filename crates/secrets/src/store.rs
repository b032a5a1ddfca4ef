//! What every place for secrets is.

use std::fmt;

use holdfast_contract::problem::Problem;
use secrecy::SecretString;

use crate::name::SecretName;

/// A place for secrets. A failure is never an absence: a store that cannot be read says so.
pub trait SecretStore: Send + Sync + fmt::Debug {
    /// Which kind of place it is.
    fn kind(&self) -> StoreKind;

    /// A secret; none if it is not there.
    fn get(&self, name: &SecretName) -> Result<Option<SecretString>, Problem>;

    /// Sets a secret, in place of the one that was there. It is kept for good when this returns.
    fn set(&self, name: &SecretName, value: &SecretString) -> Result<(), Problem>;

    /// Removes a secret, and says whether it was there.
    fn remove(&self, name: &SecretName) -> Result<bool, Problem>;

    /// The names of what is there, in order.
    fn names(&self) -> Result<Vec<SecretName>, Problem>;

    /// How it is with this place, for a person. Changes nothing, and shows no value.
    fn describe(&self) -> Description;
}

/// The kinds of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoreKind {
    /// The process's variables, and `.env`.
    Environment,
    /// The encrypted file.
    File,
    /// The system's keyring.
    Keyring,
}

impl StoreKind {
    /// As settings and messages have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::File => "file",
            Self::Keyring => "keyring",
        }
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A place for secrets, in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Which kind.
    pub kind: StoreKind,
    /// Where it is.
    pub place: String,
    /// How it is.
    pub state: SecretStoreState,
}

/// How it is with a place.
#[derive(Clone, Debug, PartialEq)]
pub enum SecretStoreState {
    /// It can be read.
    Ready {
        /// How many secrets are in it.
        secrets: usize,
    },
    /// It cannot be used, or not wholly.
    Trouble(Problem),
}

impl SecretStoreState {
    /// The state of a store whose names were asked for.
    pub(crate) fn of(names: Result<Vec<SecretName>, Problem>) -> Self {
        match names {
            Ok(names) => Self::Ready { secrets: names.len() },
            Err(problem) => Self::Trouble(problem),
        }
    }
}
