//! The payload of an encrypted file: chunks of 64 KiB, each sealed with ChaCha20-Poly1305 under its number. The last one is marked, so that a file
//! that ends at the end of a chunk is not taken for a whole one.

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::error::Unspecified;
use secrecy::zeroize::Zeroizing;

use super::format::{DerivedKey, OpenError};

const CHUNK: usize = 64 * 1024;
pub(super) const TAG: usize = 16;
const SEALED_CHUNK: usize = CHUNK + TAG;

pub(super) fn cipher(key: &DerivedKey) -> Result<LessSafeKey, Unspecified> {
    Ok(LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, &**key)?))
}

/// The header, and behind it the sealed plain text. There is always a last chunk, which is empty only if the plain text is.
pub(super) fn seal(key: &DerivedKey, header: &[u8], plain: &[u8]) -> Result<Zeroizing<Vec<u8>>, Unspecified> {
    let cipher = cipher(key)?;
    let count = plain.len().div_ceil(CHUNK).max(1);
    // With room for all, no plain text remains in a smaller buffer.
    let mut sealed = Zeroizing::new(Vec::with_capacity(header.len() + plain.len() + count * TAG));
    sealed.extend_from_slice(header);
    for number in 0..count {
        let start = sealed.len();
        let chunk = &plain[number * CHUNK..plain.len().min((number + 1) * CHUNK)];
        sealed.extend_from_slice(chunk);
        let nonce = nonce(number, number + 1 == count);
        let tag = cipher.seal_in_place_separate_tag(nonce, Aad::empty(), &mut sealed[start..])?;
        sealed.extend_from_slice(tag.as_ref());
    }
    Ok(sealed)
}

/// The plain text of a payload.
pub(super) fn open(key: &DerivedKey, payload: &[u8]) -> Result<Zeroizing<Vec<u8>>, OpenError> {
    if payload.is_empty() {
        return Err(OpenError::Truncated);
    }
    let cipher = cipher(key).map_err(|_| OpenError::NotAuthentic)?;
    let last = payload.len().div_ceil(SEALED_CHUNK) - 1;
    let mut plain = Zeroizing::new(Vec::with_capacity(payload.len()));
    for (number, chunk) in payload.chunks(SEALED_CHUNK).enumerate() {
        if open_chunk(&cipher, nonce(number, number == last), chunk, &mut plain).is_err() {
            // A chunk at the end that is not marked as the last one: the rest of the file is missing.
            let unmarked =
                number == last && open_chunk(&cipher, nonce(number, false), chunk, &mut plain).is_ok();
            return Err(if unmarked { OpenError::Truncated } else { OpenError::NotAuthentic });
        }
        if chunk.len() == TAG && number > 0 {
            return Err(OpenError::NotAuthentic);
        }
    }
    Ok(plain)
}

/// Appends a chunk's plain text.
fn open_chunk(
    cipher: &LessSafeKey,
    nonce: Nonce,
    chunk: &[u8],
    plain: &mut Zeroizing<Vec<u8>>,
) -> Result<(), Unspecified> {
    let start = plain.len();
    plain.extend_from_slice(chunk);
    let opened = cipher.open_in_place(nonce, Aad::empty(), &mut plain[start..]).map(|opened| opened.len());
    plain.truncate(start + opened.unwrap_or_default());
    opened.map(drop)
}

/// A chunk's number in 11 bytes, and whether it is the last.
fn nonce(number: usize, last: bool) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[3..11].copy_from_slice(&(number as u64).to_be_bytes());
    bytes[11] = last.into();
    Nonce::assume_unique_for_key(bytes)
}
