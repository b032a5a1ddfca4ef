//! Who opens an encrypted file: an X25519 identity, or a passphrase with scrypt. Each encrypts the file key in a stanza of the header.

use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD as BASE64;
use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, Hrp};
use ring::aead::{Aad, NONCE_LEN, Nonce};
use ring::error::Unspecified;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use x25519_dalek::{PublicKey, StaticSecret};

use super::format::{DerivedKey, OpenError, Stanza, decode, derive, random};
use super::stream::{TAG, cipher};

pub(super) const SCRYPT: &str = "scrypt";
const X25519: &str = "X25519";
const SCRYPT_LABEL: &[u8] = b"age-encryption.org/v1/scrypt";
const X25519_LABEL: &[u8] = b"age-encryption.org/v1/X25519";
const IDENTITY_PREFIX: Hrp = Hrp::parse_unchecked("age-secret-key-");
/// Characters of an identity's text: the prefix, a separator, 32 bytes and a checksum.
const IDENTITY_LENGTH: usize = 15 + 1 + 52 + 6;
const SALT_LENGTH: usize = 16;
const FILE_KEY_LENGTH: usize = 16;

/// A file that asks for more work than this, as a power of two, was not written by us.
pub(super) const MAX_BYTES_WORK: u8 = 20;

/// The key of one file.
pub(super) struct FileKey(Zeroizing<[u8; FILE_KEY_LENGTH]>);

/// An X25519 key, cleared when it is dropped.
pub(super) struct Identity(StaticSecret);

/// Who can open a file.
pub(super) enum Recipient<'a> {
    Identity(Identity),
    Passphrase {
        passphrase: &'a SecretString,
        /// The cost of trying a passphrase of what is encrypted, as a power of two.
        work: u8,
    },
}

impl FileKey {
    pub(super) fn generate() -> Result<Self, Unspecified> {
        let mut key = Zeroizing::new([0; FILE_KEY_LENGTH]);
        random(&mut *key)?;
        Ok(Self(key))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &*self.0
    }

    /// Encrypts the file key. The nonce may be zero as a key encrypts one file key only.
    fn seal(&self, key: &DerivedKey) -> Result<Vec<u8>, Unspecified> {
        let mut body = Zeroizing::new(*self.0);
        let nonce = Nonce::assume_unique_for_key([0; NONCE_LEN]);
        let tag = cipher(key)?.seal_in_place_separate_tag(nonce, Aad::empty(), &mut *body)?;
        Ok([&body[..], tag.as_ref()].concat())
    }

    fn open(key: &DerivedKey, body: &[u8; FILE_KEY_LENGTH + TAG]) -> Result<Self, Unspecified> {
        let mut body = Zeroizing::new(*body);
        let nonce = Nonce::assume_unique_for_key([0; NONCE_LEN]);
        let opened = cipher(key)?.open_in_place(nonce, Aad::empty(), &mut *body)?;
        let mut file_key = Zeroizing::new([0; FILE_KEY_LENGTH]);
        file_key.copy_from_slice(opened);
        Ok(Self(file_key))
    }
}

impl Recipient<'_> {
    /// Encrypts a file key.
    pub(super) fn wrap(&self, file_key: &FileKey) -> Result<Stanza, Unspecified> {
        match self {
            Self::Identity(identity) => identity.wrap(file_key),
            Self::Passphrase { passphrase, work } => {
                let mut salt = [0; SALT_LENGTH];
                random(&mut salt)?;
                let key = passphrase_key(passphrase, &salt, *work).ok_or(Unspecified)?;
                let arguments = vec![BASE64.encode(salt), work.to_string()];
                Ok(Stanza { kind: SCRYPT.to_owned(), arguments, body: file_key.seal(&key)? })
            }
        }
    }

    /// The file key in the stanza that is for this recipient.
    pub(super) fn unwrap(&self, stanzas: &[Stanza]) -> Result<FileKey, OpenError> {
        let kind = match self {
            Self::Identity(_) => X25519,
            Self::Passphrase { .. } => SCRYPT,
        };
        for stanza in stanzas.iter().filter(|stanza| stanza.kind == kind) {
            let body = stanza.body.as_slice().try_into().map_err(|_| OpenError::InvalidHeader)?;
            match self {
                Self::Passphrase { passphrase, .. } => return unwrap_passphrase(passphrase, stanza, body),
                // A stanza does not say for which identity it is, so that one that does not open is another's.
                Self::Identity(identity) => match identity.unwrap(stanza, body)? {
                    Some(file_key) => return Ok(file_key),
                    None => continue,
                },
            }
        }
        Err(OpenError::NoMatchingIdentity)
    }
}

impl Identity {
    pub(super) fn generate() -> Result<Self, Unspecified> {
        let mut bytes = Zeroizing::new([0; 32]);
        random(&mut *bytes)?;
        Ok(Self(StaticSecret::from(*bytes)))
    }

    /// Reads `AGE-SECRET-KEY-1…`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let checked = CheckedHrpstring::new::<Bech32>(text).ok()?;
        let mut bytes = Zeroizing::new([0; 32]);
        if checked.hrp() != IDENTITY_PREFIX || checked.byte_iter().len() != bytes.len() {
            return None;
        }
        bytes.iter_mut().zip(checked.byte_iter()).for_each(|(to, from)| *to = from);
        let identity = Self(StaticSecret::from(*bytes));
        // One text for one identity: the bits that fill up the last character are zero.
        let same = identity.to_text().is_some_and(|canonical| canonical.eq_ignore_ascii_case(text));
        same.then_some(identity)
    }

    /// As [`Identity::parse`] reads it.
    pub(super) fn to_text(&self) -> Option<Zeroizing<String>> {
        // With room for all, no part remains in a smaller buffer.
        let mut text = Zeroizing::new(String::with_capacity(IDENTITY_LENGTH));
        bech32::encode_upper_to_fmt::<Bech32, _>(&mut *text, IDENTITY_PREFIX, self.0.as_bytes()).ok()?;
        Some(text)
    }

    fn wrap(&self, file_key: &FileKey) -> Result<Stanza, Unspecified> {
        let ephemeral = Self::generate()?.0;
        let (share, recipient) = (PublicKey::from(&ephemeral), PublicKey::from(&self.0));
        let key = agreed_key(&ephemeral, &recipient, &share, &recipient)?;
        let arguments = vec![BASE64.encode(share.as_bytes())];
        Ok(Stanza { kind: X25519.to_owned(), arguments, body: file_key.seal(&key)? })
    }

    /// The file key in a stanza; none if the stanza is for another identity.
    fn unwrap(
        &self,
        stanza: &Stanza,
        body: &[u8; FILE_KEY_LENGTH + TAG],
    ) -> Result<Option<FileKey>, OpenError> {
        let [share] = stanza.arguments.as_slice() else { return Err(OpenError::InvalidHeader) };
        let share = decode::<32>(share.as_bytes()).map(PublicKey::from).ok_or(OpenError::InvalidHeader)?;
        let key = agreed_key(&self.0, &share, &share, &PublicKey::from(&self.0));
        let key = key.map_err(|_| OpenError::InvalidHeader)?;
        Ok(FileKey::open(&key, body).ok())
    }
}

/// The key on which the ephemeral share and the recipient agree. A share that makes it the same for every recipient is refused.
fn agreed_key(
    secret: &StaticSecret,
    theirs: &PublicKey,
    share: &PublicKey,
    recipient: &PublicKey,
) -> Result<DerivedKey, Unspecified> {
    let shared = secret.diffie_hellman(theirs);
    if !shared.was_contributory() {
        return Err(Unspecified);
    }
    let salt = [share.to_bytes(), recipient.to_bytes()].concat();
    derive(&salt, X25519_LABEL, shared.as_bytes())
}

fn unwrap_passphrase(
    passphrase: &SecretString,
    stanza: &Stanza,
    body: &[u8; FILE_KEY_LENGTH + TAG],
) -> Result<FileKey, OpenError> {
    let [salt, work] = stanza.arguments.as_slice() else { return Err(OpenError::InvalidHeader) };
    let salt = decode(salt.as_bytes()).ok_or(OpenError::InvalidHeader)?;
    let written = work.parse::<u8>().ok().filter(|number| number.to_string() == *work && *number > 0);
    let work = written.ok_or(OpenError::InvalidHeader)?;
    if work > MAX_BYTES_WORK {
        return Err(OpenError::ExcessiveWork);
    }
    let key = passphrase_key(passphrase, &salt, work).ok_or(OpenError::ExcessiveWork)?;
    FileKey::open(&key, body).map_err(|_| OpenError::WrongPassphrase)
}

fn passphrase_key(passphrase: &SecretString, salt: &[u8; SALT_LENGTH], work: u8) -> Option<DerivedKey> {
    let salt = [SCRYPT_LABEL, salt].concat();
    let mut key = DerivedKey::default();
    let parameters = scrypt::Params::new(work, 8, 1, key.len()).ok()?;
    scrypt::scrypt(passphrase.expose_secret().as_bytes(), &salt, &parameters, &mut *key).ok()?;
    Some(key)
}
