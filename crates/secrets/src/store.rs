//! The trait of all secret stores.

use std::fmt;

use holdfast_contract::problem::Problem;
use secrecy::SecretString;

use crate::name::SecretName;

/// A secret store. A store that cannot be read returns an error, never "not found".
pub trait SecretStore: Send + Sync + fmt::Debug {
    /// The kind of store.
    fn kind(&self) -> StoreKind;

    /// A secret, if it exists.
    fn get(&self, name: &SecretName) -> Result<Option<SecretString>, Problem>;

    /// Sets a secret, replacing an earlier one. It is durable when this returns.
    fn set(&self, name: &SecretName, value: &SecretString) -> Result<(), Problem>;

    /// Removes a secret, and returns whether it existed.
    fn remove(&self, name: &SecretName) -> Result<bool, Problem>;

    /// The names of all secrets, in order.
    fn names(&self) -> Result<Vec<SecretName>, Problem>;

    /// The status of the store, for display. Changes nothing and contains no value.
    fn describe(&self) -> Description;
}

/// The kinds of stores.
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

/// The status of a store.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Which kind.
    pub kind: StoreKind,
    /// Where it is.
    pub place: String,
    /// Whether it can be used.
    pub state: SecretStoreState,
}

/// Whether a store can be used.
#[derive(Clone, Debug, PartialEq)]
pub enum SecretStoreState {
    /// It can be read.
    Ready {
        /// How many secrets are in it.
        secrets: usize,
    },
    /// It cannot be used, or only in part.
    Unavailable(Problem),
}

impl SecretStoreState {
    /// The state of a store whose names were asked for.
    pub(crate) fn of(names: Result<Vec<SecretName>, Problem>) -> Self {
        match names {
            Ok(names) => Self::Ready { secrets: names.len() },
            Err(problem) => Self::Unavailable(problem),
        }
    }
}
