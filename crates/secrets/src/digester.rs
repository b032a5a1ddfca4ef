//! The digest of a secret's value that frames record, keyed with a key of the home, so that the value cannot be guessed from it.

use std::fmt;
use std::path::Path;

use holdfast_contract::digest::Digest;
use holdfast_contract::problem::{Code, Problem};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};

use crate::files::{self, Private, WriteLock};

const LENGTH: usize = 32;

/// Makes digests of values. The same home gives the same digest for the same name and value, another home another.
pub struct Digester {
    key: Zeroizing<[u8; LENGTH]>,
}

impl Digester {
    /// The digester of a home. Its key, `secrets.digest`, is created if it is missing.
    pub fn open(home: &Path) -> Result<Self, Problem> {
        let path = home.join("secrets.digest");
        if let Some(digester) = Self::read(&path)? {
            return Ok(digester);
        }
        let _lock = WriteLock::take(home)?;
        let mut key = Zeroizing::new([0; LENGTH]);
        getrandom::fill(&mut *key).map_err(|_| {
            Problem::in_file(Code::Internal, &path, "the operating system returned no random bytes")
        })?;
        files::write_draft(&path, &*key)?.commit_new()?;
        // Another process may have been first; then its key counts.
        Self::read(&path)?.ok_or_else(|| {
            Problem::in_file(Code::SecretsUnreadable, &path, "the key was removed while it was created")
        })
    }

    fn read(path: &Path) -> Result<Option<Self>, Problem> {
        let Some(file) = Private::open(path)? else { return Ok(None) };
        let bytes = file.read()?;
        let key = <[u8; LENGTH]>::try_from(bytes.as_slice()).map_err(|_| {
            let what = format!("{} does not have {LENGTH} bytes", path.display());
            let help = "Restore it from a backup, or move it away: then secrets in older frames match nothing any more.";
            Problem::in_file(Code::SecretsDamaged, path, what).help(help)
        })?;
        Ok(Some(Self { key: Zeroizing::new(key) }))
    }

    /// The digest of a value under the name that a frame has. Equal values under two names have two digests.
    pub fn digest(&self, name: &str, value: &SecretString) -> Digest {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&u64::try_from(name.len()).unwrap_or(u64::MAX).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(value.expose_secret().as_bytes());
        Digest::from_bytes(*hasher.finalize().as_bytes())
    }
}

impl fmt::Debug for Digester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digester")
    }
}
