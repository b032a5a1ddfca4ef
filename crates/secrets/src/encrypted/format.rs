//! The file format `age-encryption.org/v1` (<https://c2sp.org/age>): a header with one stanza for each recipient and a MAC, then the payload.
//! `recipient.rs` has the stanzas that are written and opened here, `stream.rs` the payload. Only what the specification allows is read: canonical
//! base64 without padding, lines of exactly 64 columns, and nothing after the payload. The `age` crate is the reference in `format_tests.rs`.

use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD as BASE64;
use ring::error::Unspecified;
use ring::{hkdf, hmac};
use secrecy::zeroize::Zeroizing;

use super::recipient::{FileKey, Recipient, SCRYPT};
use super::stream;

const VERSION_LINE: &[u8] = b"age-encryption.org/v1\n";
const STANZA_MARK: &[u8] = b"-> ";
const MAC_MARK: &[u8] = b"---";
/// A space, 32 bytes in base64, a line break.
const MAC_LENGTH: usize = 1 + 43 + 1;
const COLUMNS: usize = 64;
const NONCE_LENGTH: usize = 16;

/// A key of 32 bytes, cleared when it is dropped.
pub(super) type DerivedKey = Zeroizing<[u8; 32]>;

/// Why a file cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenError {
    /// No stanza is for this identity.
    NoMatchingIdentity,
    /// The passphrase does not open its stanza.
    WrongPassphrase,
    /// The file ends too early.
    Truncated,
    /// The header is not one of this format.
    InvalidHeader,
    /// Trying the passphrase would take more work than is allowed.
    ExcessiveWork,
    /// The header or the payload is not authentic.
    NotAuthentic,
}

/// The file key, encrypted for one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stanza {
    pub(super) kind: String,
    pub(super) arguments: Vec<String>,
    pub(super) body: Vec<u8>,
}

/// An encrypted file whose header was parsed. Nothing in it is authentic before it is opened.
pub(super) struct EncryptedBytes<'a> {
    stanzas: Vec<Stanza>,
    /// What the MAC is taken over.
    authenticated: &'a [u8],
    mac: [u8; 32],
    nonce: [u8; NONCE_LENGTH],
    payload: &'a [u8],
}

impl<'a> EncryptedBytes<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, OpenError> {
        let mut rest = after(bytes, VERSION_LINE)?;
        let mut stanzas = Vec::new();
        while stanzas.is_empty() || !rest.starts_with(&MAC_MARK[..rest.len().min(MAC_MARK.len())]) {
            let (stanza, more) = Stanza::parse(rest)?;
            stanzas.push(stanza);
            rest = more;
        }
        rest = after(rest, MAC_MARK)?;
        let authenticated = &bytes[..bytes.len() - rest.len()];
        let (mac, rest) = rest.split_at_checked(MAC_LENGTH).ok_or(OpenError::Truncated)?;
        let mac = mac.strip_prefix(b" ").and_then(|mac| mac.strip_suffix(b"\n"));
        let mac = mac.and_then(decode).ok_or(OpenError::InvalidHeader)?;
        let (nonce, payload) = rest.split_first_chunk().ok_or(OpenError::Truncated)?;
        // A passphrase must be the only way to open a file, so that its owner knows who could have written the file.
        if stanzas.len() > 1 && stanzas.iter().any(|stanza| stanza.kind == SCRYPT) {
            return Err(OpenError::InvalidHeader);
        }
        Ok(Self { stanzas, authenticated, mac, nonce: *nonce, payload })
    }

    /// Whether it was written with a passphrase.
    pub(super) fn has_passphrase(&self) -> bool {
        self.stanzas.iter().any(|stanza| stanza.kind == SCRYPT)
    }

    /// The plain text.
    pub(super) fn open(&self, recipient: &Recipient) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let file_key = recipient.unwrap(&self.stanzas)?;
        let mac_key = header_key(&file_key).map_err(|_| OpenError::NotAuthentic)?;
        hmac::verify(&mac_key, self.authenticated, &self.mac).map_err(|_| OpenError::NotAuthentic)?;
        let key = payload_key(&file_key, &self.nonce).map_err(|_| OpenError::NotAuthentic)?;
        stream::open(&key, self.payload)
    }
}

/// Encrypts for one recipient, under a file key that is used once.
pub(super) fn encrypt(recipient: &Recipient, plain: &[u8]) -> Result<Zeroizing<Vec<u8>>, Unspecified> {
    let file_key = FileKey::generate()?;
    let mut header = VERSION_LINE.to_vec();
    recipient.wrap(&file_key)?.write(&mut header);
    header.extend_from_slice(MAC_MARK);
    let mac = hmac::sign(&header_key(&file_key)?, &header);
    header.extend_from_slice(format!(" {}\n", BASE64.encode(mac)).as_bytes());
    let mut nonce = [0; NONCE_LENGTH];
    random(&mut nonce)?;
    header.extend_from_slice(&nonce);
    stream::seal(&payload_key(&file_key, &nonce)?, &header, plain)
}

impl Stanza {
    /// Reads a stanza, and returns it with what follows it.
    fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), OpenError> {
        let (line, mut rest) = line(after(bytes, STANZA_MARK)?)?;
        let line = std::str::from_utf8(line).map_err(|_| OpenError::InvalidHeader)?;
        let mut words = line.split(' ').map(str::to_owned);
        if words.clone().any(|word| word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(OpenError::InvalidHeader);
        }
        let kind = words.next().ok_or(OpenError::InvalidHeader)?;
        let mut text = Vec::new();
        // Full lines, and then one that is shorter, empty if need be.
        loop {
            let (line, more) = self::line(rest)?;
            rest = more;
            text.extend_from_slice(line);
            match line.len() {
                COLUMNS => {}
                0..COLUMNS => break,
                _ => return Err(OpenError::InvalidHeader),
            }
        }
        let body = BASE64.decode(text).map_err(|_| OpenError::InvalidHeader)?;
        Ok((Self { kind, arguments: words.collect(), body }, rest))
    }

    fn write(&self, header: &mut Vec<u8>) {
        header.extend_from_slice(STANZA_MARK);
        header.extend_from_slice(self.kind.as_bytes());
        for argument in &self.arguments {
            header.push(b' ');
            header.extend_from_slice(argument.as_bytes());
        }
        let body = BASE64.encode(&self.body);
        for line in body.as_bytes().chunks(COLUMNS) {
            header.push(b'\n');
            header.extend_from_slice(line);
        }
        if body.len().is_multiple_of(COLUMNS) {
            header.push(b'\n');
        }
        header.push(b'\n');
    }
}

/// What follows a mark that has to be there.
fn after<'a>(bytes: &'a [u8], mark: &[u8]) -> Result<&'a [u8], OpenError> {
    let error = if mark.starts_with(bytes) { OpenError::Truncated } else { OpenError::InvalidHeader };
    bytes.strip_prefix(mark).ok_or(error)
}

/// The first line without its line break, and what follows it.
fn line(bytes: &[u8]) -> Result<(&[u8], &[u8]), OpenError> {
    let end = bytes.iter().position(|&byte| byte == b'\n').ok_or(OpenError::Truncated)?;
    Ok((&bytes[..end], &bytes[end + 1..]))
}

/// Canonical base64 of exactly this many bytes.
pub(super) fn decode<const LENGTH: usize>(text: &[u8]) -> Option<[u8; LENGTH]> {
    BASE64.decode(text).ok()?.try_into().ok()
}

pub(super) fn random(bytes: &mut [u8]) -> Result<(), Unspecified> {
    getrandom::fill(bytes).map_err(|_| Unspecified)
}

/// HKDF-SHA256 to a key of 32 bytes.
pub(super) fn derive(salt: &[u8], label: &[u8], secret: &[u8]) -> Result<DerivedKey, Unspecified> {
    let mut key = DerivedKey::default();
    let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(secret);
    extracted.expand(&[label], hkdf::HKDF_SHA256)?.fill(&mut *key)?;
    Ok(key)
}

fn header_key(file_key: &FileKey) -> Result<hmac::Key, Unspecified> {
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &*derive(b"", b"header", file_key.bytes())?))
}

fn payload_key(file_key: &FileKey, nonce: &[u8]) -> Result<DerivedKey, Unspecified> {
    derive(nonce, b"payload", file_key.bytes())
}
