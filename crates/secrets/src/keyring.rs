//! The system's keyring: the Secret Service on Linux, spoken to over D-Bus without a C library, in builds with the feature `keyring`; the keychain
//! on macOS, always. A build without support and a machine without a keyring are errors.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use holdfast_contract::problem::{Code, Problem};
use keyring_core::{CredentialStore, Entry, Error};
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};

use crate::name::SecretName;
use crate::store::{Description, SecretStore, SecretStoreState, StoreKind};

/// A home's secrets in the keyring of its user.
pub struct Keyring {
    service: String,
    connection: Mutex<Option<Arc<CredentialStore>>>,
}

impl Keyring {
    /// The keyring, which is connected to when it is first used. Secrets of other homes are not seen.
    pub fn new(home: &Path) -> Self {
        Self { service: format!("holdfast:{}", home.display()), connection: Mutex::new(None) }
    }

    /// Whether this build can talk to a keyring of this system.
    pub const SUPPORTED: bool = cfg!(any(all(target_os = "linux", feature = "keyring"), target_os = "macos"));

    /// The same over a store that is there already.
    #[cfg(test)]
    pub(crate) fn over(home: &Path, store: Arc<CredentialStore>) -> Self {
        Self { connection: Mutex::new(Some(store)), ..Self::new(home) }
    }

    fn connected(&self) -> Result<Arc<CredentialStore>, Problem> {
        let mut connection = self.connection.lock();
        if let Some(store) = &*connection {
            return Ok(store.clone());
        }
        let store = platform::connect()?;
        Ok(connection.insert(store).clone())
    }

    fn entry(&self, name: &SecretName) -> Result<Entry, Problem> {
        let store = self.connected()?;
        store.build(&self.service, &name.to_string(), None).map_err(|error| unavailable(&error))
    }
}

/// What the keyring cannot do. Some of its errors carry values; only their kind is told.
fn unavailable(error: &Error) -> Problem {
    let what = match error {
        Error::PlatformFailure(error) => format!("there is no keyring that answers: {error}"),
        Error::NoStorageAccess(error) => format!("the keyring is locked: {error}"),
        Error::Ambiguous(_) => "the keyring has several secrets of this name".to_owned(),
        Error::TooLong(..) => "the secret is too long for the keyring".to_owned(),
        Error::BadEncoding(_) => "the keyring's entry of this name is not text".to_owned(),
        Error::NotSupportedByStore(what) => format!("the keyring cannot do this: {what}"),
        _ => "the keyring cannot do this".to_owned(),
    };
    Problem::new(Code::KeyringUnavailable, what)
}

impl SecretStore for Keyring {
    fn kind(&self) -> StoreKind {
        StoreKind::Keyring
    }

    fn get(&self, name: &SecretName) -> Result<Option<SecretString>, Problem> {
        match self.entry(name)?.get_password() {
            Ok(value) => Ok(Some(SecretString::from(value))),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(unavailable(&error)),
        }
    }

    fn set(&self, name: &SecretName, value: &SecretString) -> Result<(), Problem> {
        self.entry(name)?.set_password(value.expose_secret()).map_err(|error| unavailable(&error))
    }

    fn remove(&self, name: &SecretName) -> Result<bool, Problem> {
        match self.entry(name)?.delete_credential() {
            Ok(()) => Ok(true),
            Err(Error::NoEntry) => Ok(false),
            Err(error) => Err(unavailable(&error)),
        }
    }

    fn names(&self) -> Result<Vec<SecretName>, Problem> {
        let wanted = HashMap::from([("service", self.service.as_str())]);
        let found = self.connected()?.search(&wanted).map_err(|error| unavailable(&error))?;
        let ours =
            found.iter().filter_map(Entry::get_specifiers).filter(|(service, _)| *service == self.service);
        let mut names: Vec<SecretName> = ours.filter_map(|(_, name)| name.parse().ok()).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn describe(&self) -> Description {
        let place = format!("{} as {}", platform::NAME, self.service);
        Description { kind: self.kind(), place, state: SecretStoreState::of(self.names()) }
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({})", self.service)
    }
}

#[cfg(all(target_os = "linux", feature = "keyring"))]
mod platform {
    use super::*;

    pub(super) const NAME: &str = "the Secret Service";

    pub(super) fn connect() -> Result<Arc<CredentialStore>, Problem> {
        let store = zbus_secret_service_keyring_store::Store::new().map_err(|error| unavailable(&error))?;
        Ok(store)
    }
}

#[cfg(all(target_os = "linux", not(feature = "keyring")))]
mod platform {
    use super::*;

    pub(super) const NAME: &str = "the Secret Service";

    pub(super) fn connect() -> Result<Arc<CredentialStore>, Problem> {
        let help = "Build with `--features keyring`, or keep secrets in `secrets.age`: `secrets.store: file` in `config/settings.yaml`.";
        Err(Problem::new(Code::KeyringUnavailable, "this build has no keyring support").help(help))
    }
}

#[cfg(target_os = "macos")]
mod platform {
    use super::*;

    pub(super) const NAME: &str = "the login keychain";

    pub(super) fn connect() -> Result<Arc<CredentialStore>, Problem> {
        let store =
            apple_native_keyring_store::keychain::Store::new().map_err(|error| unavailable(&error))?;
        Ok(store)
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod platform {
    use super::*;

    pub(super) const NAME: &str = "the system's keyring";

    pub(super) fn connect() -> Result<Arc<CredentialStore>, Problem> {
        let help = "Keep secrets in `secrets.age`: `secrets.store: file` in `config/settings.yaml`.";
        Err(Problem::new(Code::KeyringUnavailable, "no keyring of this system is supported").help(help))
    }
}
