//! Where secrets are kept, and how they stay out of what is shown and recorded.
//!
//! Start at [`SecretStore`], which is what every place is: [`EnvironmentStore`] (`.env` and the process's variables), [`EncryptedFile`]
//! (`secrets.age` in the home) and [`Keyring`] (the system's). A [`Chain`] looks through several and writes to one. A [`Redactor`] takes known
//! values out of text, and a [`Digester`] makes of a value what a frame may record. `docs/secrets.md` is the user's page.
//!
//! Use this crate to read, write and redact secrets. Do not decide here who may have one, which is the policy's. Everything blocks: on the disk, on
//! the derivation of a key, on a keyring that asks its user. Nothing here reads the process's environment by itself: what it needs is handed in.

mod chain;
mod digester;
mod encrypted;
mod environment;
mod files;
mod keyring;
mod name;
mod redact;
mod store;

#[cfg(test)]
mod attack_tests;
#[cfg(test)]
mod canary_tests;
#[cfg(test)]
mod chain_tests;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod encrypted_tests;
#[cfg(test)]
mod environment_tests;
#[cfg(test)]
mod keyring_tests;
#[cfg(test)]
mod redact_tests;
#[cfg(test)]
mod testing;

pub use chain::{Chain, FoundSecret, RemovedSecret, StoredSecret};
pub use digester::Digester;
pub use encrypted::{EncryptedFile, PASSPHRASE_VARIABLE};
pub use environment::EnvironmentStore;
pub use keyring::Keyring;
pub use name::SecretName;
pub use redact::{RedactedStream, Redactor, SHORTEST};
pub use secrecy::{ExposeSecret, SecretString};
pub use store::{Description, SecretStore, SecretStoreState, StoreKind};
