//! `secrets.age`: all secrets in one file, encrypted for the identity in `secrets.key` or with a passphrase. Both are in the formats of the
//! `age` tool, which can open them as well: `format.rs`, `recipient.rs` and `stream.rs` read and write that format.

mod content;
mod format;
mod key;
mod recipient;
mod stream;

#[cfg(test)]
mod format_tests;

use std::fmt;
use std::path::{Path, PathBuf};

use holdfast_contract::problem::{Code, Problem};
use parking_lot::Mutex;
use secrecy::SecretString;

use crate::files::{self, Private, Stamp, WriteLock};
use crate::name::SecretName;
use crate::store::{Description, SecretStore, SecretStoreState, StoreKind};
use content::SecretsContent;
use key::Key;

/// The variable that holds the passphrase, where one is used instead of `secrets.key`.
pub const PASSPHRASE_VARIABLE: &str = "HOLDFAST_SECRETS_PASSPHRASE";

/// The encrypted file of a home. It is made with the first secret.
pub struct EncryptedFile {
    home: PathBuf,
    key: Key,
    /// The last content, so that the key is not derived again for every secret.
    read: Mutex<Option<(Stamp, SecretsContent)>>,
}

impl EncryptedFile {
    /// The file of this home, with a passphrase or else with the identity in `secrets.key`.
    pub fn new(home: &Path, passphrase: Option<SecretString>) -> Self {
        let key = match passphrase {
            Some(passphrase) => Key::passphrase(passphrase),
            None => Key::identity(home),
        };
        Self { home: home.to_owned(), key, read: Mutex::new(None) }
    }

    fn path(&self) -> PathBuf {
        self.home.join("secrets.age")
    }

    /// What is in the file. Nothing is in a file that was never written; a file that cannot be opened is a problem.
    fn load(&self) -> Result<SecretsContent, Problem> {
        let path = self.path();
        let Some(file) = Private::open(&path)? else { return Ok(SecretsContent::default()) };
        let stamp = file.stamp();
        let mut read = self.read.lock();
        if let Some((_, content)) = read.as_ref().filter(|(known, _)| *known == stamp) {
            return Ok(content.clone());
        }
        let content = self.decrypt(&file.read()?)?;
        *read = Some((stamp, content.clone()));
        Ok(content)
    }

    fn decrypt(&self, bytes: &[u8]) -> Result<SecretsContent, Problem> {
        let path = self.path();
        let plain = self.key.decrypt(&path, bytes)?;
        SecretsContent::parse(&plain).ok_or_else(|| {
            let what = format!("{} holds something other than secrets of this version", path.display());
            Problem::in_file(Code::SecretsDamaged, &path, what)
        })
    }

    /// Rewrites the file if the change modifies anything. Returns the result of the change.
    fn change<T>(&self, change: impl FnOnce(&mut SecretsContent) -> Option<T>) -> Result<Option<T>, Problem> {
        let _lock = WriteLock::take(&self.home)?;
        // Read under the lock: another process may just have written, and what cannot be read must not be replaced.
        let mut content = self.load()?;
        let Some(changed) = change(&mut content) else { return Ok(None) };
        self.draft(&content)?.commit()?;
        *self.read.lock() = None;
        Ok(Some(changed))
    }

    /// The encrypted content as a draft on disk, read back to check it.
    fn draft(&self, content: &SecretsContent) -> Result<files::PrivateDraft, Problem> {
        let path = self.path();
        let bytes = self.key.encrypt(&path, &content.to_bytes())?;
        if self.decrypt(&bytes)? != *content {
            let what = "what was encrypted does not come back the same, so nothing was written";
            return Err(Problem::in_file(Code::Internal, &path, what));
        }
        files::write_draft(&path, &bytes)
    }
}

impl SecretStore for EncryptedFile {
    fn kind(&self) -> StoreKind {
        StoreKind::File
    }

    fn get(&self, name: &SecretName) -> Result<Option<SecretString>, Problem> {
        Ok(self.load()?.get(name))
    }

    fn set(&self, name: &SecretName, value: &SecretString) -> Result<(), Problem> {
        self.change(|content| content.set(name, value)).map(drop)
    }

    fn remove(&self, name: &SecretName) -> Result<bool, Problem> {
        Ok(self.change(|content| content.remove(name))?.is_some())
    }

    fn names(&self) -> Result<Vec<SecretName>, Problem> {
        Ok(self.load()?.names())
    }

    fn describe(&self) -> Description {
        let place = format!("{}, {}", self.path().display(), self.key);
        Description { kind: self.kind(), place, state: SecretStoreState::of(self.names()) }
    }
}

impl fmt::Debug for EncryptedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncryptedFile({})", self.path().display())
    }
}
