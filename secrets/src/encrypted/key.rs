//! What opens the encrypted file: an identity in a file of its own, or a passphrase.

use std::fmt;
use std::io::{ErrorKind, Read};
use std::iter;
use std::path::{Path, PathBuf};

use age::{DecryptError, Decryptor, Identity, Recipient, scrypt, x25519};
use holdfast_contract::problem::{Code, Problem};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};

use super::PASSPHRASE_VARIABLE;
use crate::files::{self, Draft, Private};

/// The cost of trying a passphrase, as a power of two: some tenths of a second.
const WORK: u8 = 17;

/// A file that asks for more than this was not written by us.
const MOST_WORK: u8 = 20;

const HEADER: &str =
    "# Opens secrets.age. Whoever has both files has the secrets; whoever loses this one loses them.";

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
    pub(super) fn encrypt(&self, path: &Path, plain: &[u8]) -> Result<Vec<u8>, Problem> {
        let recipient: Box<dyn Recipient> = match self {
            Self::Identity { path: key } => Box::new(self.read_or_make(key, path)?.to_public()),
            Self::Passphrase(passphrase) => {
                let mut recipient = scrypt::Recipient::new(passphrase.clone());
                recipient.set_work_factor(WORK);
                Box::new(recipient)
            }
        };
        let encrypted = age::Encryptor::with_recipients(iter::once(&*recipient)).ok().and_then(|encryptor| {
            let mut bytes = Vec::new();
            let mut writer = encryptor.wrap_output(&mut bytes).ok()?;
            std::io::Write::write_all(&mut writer, plain).ok()?;
            writer.finish().ok()?;
            Some(bytes)
        });
        encrypted.ok_or_else(|| files::problem(Code::Internal, path, "the secrets could not be encrypted"))
    }

    /// Decrypts, and tells a wrong key from damage.
    pub(super) fn decrypt(&self, path: &Path, bytes: &[u8]) -> Result<Zeroizing<Vec<u8>>, Problem> {
        let decryptor = Decryptor::new_buffered(bytes).map_err(|error| self.refused(path, &error))?;
        let identity: Box<dyn Identity> = match (self, decryptor.is_scrypt()) {
            (Self::Identity { path: key }, false) => match read(key)? {
                Some(identity) => Box::new(identity),
                None => return Err(wrong_key(path, &format!("{} is missing", key.display()))),
            },
            (Self::Passphrase(passphrase), true) => {
                let mut identity = scrypt::Identity::new(passphrase.clone());
                identity.set_max_work_factor(MOST_WORK);
                Box::new(identity)
            }
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
        let mut reader =
            decryptor.decrypt(iter::once(&*identity)).map_err(|error| self.refused(path, &error))?;
        // The plain text is shorter than what it was encrypted to.
        let mut plain = Zeroizing::new(Vec::with_capacity(bytes.len()));
        reader.read_to_end(&mut plain).map_err(|error| self.refused(path, &DecryptError::Io(error)))?;
        Ok(plain)
    }

    fn refused(&self, path: &Path, error: &DecryptError) -> Problem {
        let damaged =
            |what: &str| files::problem(Code::SecretsDamaged, path, format!("{} {what}", path.display()));
        match error {
            DecryptError::NoMatchingKeys => wrong_key(path, "it was written for another identity"),
            DecryptError::KeyDecryptionFailed => wrong_key(path, "the passphrase is another"),
            DecryptError::DecryptionFailed if matches!(self, Self::Passphrase(_)) => {
                wrong_key(path, "the passphrase is another")
            }
            DecryptError::Io(error) if error.kind() == ErrorKind::UnexpectedEof => damaged("breaks off"),
            DecryptError::InvalidHeader | DecryptError::UnknownFormat => damaged("is no encrypted file"),
            DecryptError::ExcessiveWork { .. } => damaged("asks for more work than we ever do"),
            _ => damaged("was changed by something else, or is damaged"),
        }
    }

    fn read_or_make(&self, key: &Path, encrypted: &Path) -> Result<x25519::Identity, Problem> {
        if let Some(identity) = read(key)? {
            return Ok(identity);
        }
        if encrypted.exists() {
            return Err(wrong_key(encrypted, &format!("{} is missing", key.display())));
        }
        let made = x25519::Identity::generate();
        let text = Zeroizing::new(format!("{HEADER}\n{}\n", made.to_string().expose_secret()));
        Draft::write(key, text.as_bytes())?.commit_new()?;
        Ok(made)
    }
}

fn wrong_key(path: &Path, why: &str) -> Problem {
    files::problem(Code::SecretsKey, path, format!("{} cannot be opened: {why}", path.display()))
}

/// The identity in a file; none if there is no file.
fn read(path: &Path) -> Result<Option<x25519::Identity>, Problem> {
    let Some(file) = Private::open(path)? else { return Ok(None) };
    let bytes = file.read()?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let identity = lines.next().and_then(|line| line.parse().ok()).filter(|_| lines.next().is_none());
    let what = || format!("{} holds no identity", path.display());
    identity.map(Some).ok_or_else(|| files::problem(Code::SecretsKey, path, what()))
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity { .. } => f.write_str("opened with secrets.key"),
            Self::Passphrase(_) => write!(f, "opened with the passphrase in {PASSPHRASE_VARIABLE}"),
        }
    }
}
