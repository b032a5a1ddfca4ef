//! What opens the encrypted file: an identity in a file of its own, or a passphrase.

use std::fmt;
use std::path::{Path, PathBuf};

use holdfast_contract::problem::{Code, Problem};
use secrecy::SecretString;
use secrecy::zeroize::Zeroizing;

use super::PASSPHRASE_VARIABLE;
use super::format::{self, EncryptedBytes, OpenError};
use super::recipient::{Identity, Recipient};
use crate::files::{self, Private};

/// The cost of trying a passphrase, as a power of two: some tenths of a second.
const WORK: u8 = 17;

const HEADER: &str =
    "# Decrypts secrets.age. Both files together reveal the secrets; without this one they are lost.";

pub(super) enum Key {
    Identity { path: PathBuf },
    Passphrase(SecretString),
}

impl Key {
    pub(super) fn identity(home: &Path) -> Self {
        Self::Identity { path: home.join("secrets.key") }
    }

    pub(super) fn passphrase(passphrase: SecretString) -> Self {
        Self::Passphrase(passphrase)
    }

    /// Encrypts, for an identity that is made if there is none yet and nothing was encrypted for another.
    pub(super) fn encrypt(&self, path: &Path, plain: &[u8]) -> Result<Zeroizing<Vec<u8>>, Problem> {
        let recipient = match self {
            Self::Identity { path: key } => Recipient::Identity(self.read_or_make(key, path)?),
            Self::Passphrase(passphrase) => Recipient::Passphrase { passphrase, work: WORK },
        };
        format::encrypt(&recipient, plain)
            .map_err(|_| Problem::in_file(Code::Internal, path, "the secrets could not be encrypted"))
    }

    /// Decrypts, and tells a wrong key from damage.
    pub(super) fn decrypt(&self, path: &Path, bytes: &[u8]) -> Result<Zeroizing<Vec<u8>>, Problem> {
        let encrypted = EncryptedBytes::parse(bytes).map_err(|error| refused(path, error))?;
        let recipient = match (self, encrypted.has_passphrase()) {
            (Self::Identity { path: key }, false) => match read(key)? {
                Some(identity) => Recipient::Identity(identity),
                None => return Err(wrong_key(path, &format!("{} is missing", key.display()))),
            },
            (Self::Passphrase(passphrase), true) => Recipient::Passphrase { passphrase, work: WORK },
            (Self::Identity { .. }, true) => {
                let help = format!("Set {PASSPHRASE_VARIABLE} to the passphrase; nothing was overwritten.");
                return Err(wrong_key(path, "it was written with a passphrase, and none is given").help(help));
            }
            (Self::Passphrase(_), false) => {
                let help = format!(
                    "Unset {PASSPHRASE_VARIABLE}, so that `secrets.key` is used; nothing was overwritten."
                );
                return Err(
                    wrong_key(path, "it was written for an identity, and a passphrase is given").help(help)
                );
            }
        };
        encrypted.open(&recipient).map_err(|error| refused(path, error))
    }

    fn read_or_make(&self, key: &Path, encrypted: &Path) -> Result<Identity, Problem> {
        if let Some(identity) = read(key)? {
            return Ok(identity);
        }
        if encrypted.exists() {
            return Err(wrong_key(encrypted, &format!("{} is missing", key.display())));
        }
        let made = Identity::generate().ok().and_then(|made| Some((made.to_text()?, made)));
        let (text, made) = made.ok_or_else(|| {
            Problem::in_file(Code::Internal, key, "the operating system returned no random bytes")
        })?;
        let text = Zeroizing::new(format!("{HEADER}\n{}\n", *text));
        files::write_draft(key, text.as_bytes())?.commit_new()?;
        Ok(made)
    }
}

fn refused(path: &Path, error: OpenError) -> Problem {
    let damaged =
        |what: &str| Problem::in_file(Code::SecretsDamaged, path, format!("{} {what}", path.display()));
    match error {
        OpenError::NoMatchingIdentity => wrong_key(path, "it was written for another identity"),
        OpenError::WrongPassphrase => wrong_key(path, "the passphrase is another"),
        OpenError::Truncated => damaged("breaks off"),
        OpenError::InvalidHeader => damaged("is not an encrypted file"),
        OpenError::ExcessiveWork => damaged("asks for more work than we ever do"),
        OpenError::NotAuthentic => damaged("was changed by something else, or is damaged"),
    }
}

fn wrong_key(path: &Path, why: &str) -> Problem {
    Problem::in_file(Code::SecretsKey, path, format!("{} cannot be opened: {why}", path.display()))
}

/// The identity in a file; none if there is no file.
fn read(path: &Path) -> Result<Option<Identity>, Problem> {
    let Some(file) = Private::open(path)? else { return Ok(None) };
    let bytes = file.read()?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let identity = lines.next().and_then(Identity::parse).filter(|_| lines.next().is_none());
    let what = || format!("{} holds no identity", path.display());
    identity.map(Some).ok_or_else(|| Problem::in_file(Code::SecretsKey, path, what()))
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity { .. } => f.write_str("opened with secrets.key"),
            Self::Passphrase(_) => write!(f, "opened with the passphrase in {PASSPHRASE_VARIABLE}"),
        }
    }
}
