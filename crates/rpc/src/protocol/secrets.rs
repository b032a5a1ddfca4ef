//! Requests about the secrets of a home, and their answers. A value is only ever sent to the owner, never by it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClientRequest, Method, NoParams, Request};

methods! {
    /// What can be asked about secrets.
    Secrets: SecretMethod {
        /// The names of the secrets, and where each comes from.
        "secrets.list" => List(NoParams),
        /// Store a secret. It is redacted from then on.
        "secret.set" => Set(SecretSet),
        /// Remove a secret from every store that has it.
        "secret.remove" => Remove(SecretRemove),
    }
}

/// A secret to be stored.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretSet {
    /// Its name: `NAME`, or `extension.NAME` for an extension's own.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl fmt::Debug for SecretSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretSet").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A secret to be removed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretRemove {
    /// Its name.
    pub name: String,
}

/// A secret, without its value.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SecretInfo {
    /// Its name.
    pub name: String,
    /// The store that it comes from: `environment`, `file` or `keyring`.
    pub store: String,
    /// Where that store is.
    pub place: String,
}

/// A secret that was stored.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SecretStored {
    /// Its name.
    pub name: String,
    /// The store that it was written to.
    pub store: String,
    /// A store that is searched earlier and has another secret of this name, which takes precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_by: Option<String>,
}

/// A secret that was removed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SecretRemoved {
    /// Its name.
    pub name: String,
    /// The stores that it was removed from.
    pub stores: Vec<String>,
    /// The store that still has a secret of this name: a variable of the process cannot be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_in: Option<String>,
}
