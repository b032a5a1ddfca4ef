//! The encrypted format against its reference, the `age` crate: what one writes the other opens, and what one refuses the other refuses with the
//! same class of error. Then what only a careful attacker would write.

use std::io::{ErrorKind, Read, Write};
use std::{fs, iter};

use age::{DecryptError, Decryptor};
use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD as BASE64;
use proptest::prelude::*;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};

use super::format::{EncryptedBytes, OpenError, encrypt};
use super::recipient::{Identity, MAX_BYTES_WORK, Recipient};
use crate::EncryptedFile;
use crate::testing::{encrypted, got, put, secret, set_mode};

const SIZES: [usize; 6] = [0, 1, 65_535, 65_536, 65_537, 200_000];
const WORK: u8 = 4;

/// One key as we have it and as the reference has it.
enum Pair {
    Identity(age::x25519::Identity),
    /// The reference's is made once, as it measures the machine first.
    Passphrase(SecretString, Box<age::scrypt::Identity>),
}

impl Pair {
    fn both() -> [Self; 2] {
        [Self::identity(), Self::passphrase("correct horse")]
    }

    fn identity() -> Self {
        Self::Identity(age::x25519::Identity::generate())
    }

    fn passphrase(text: &str) -> Self {
        let mut identity = age::scrypt::Identity::new(secret(text));
        identity.set_max_work_factor(MAX_BYTES_WORK);
        Self::Passphrase(secret(text), Box::new(identity))
    }

    fn ours(&self) -> Recipient<'_> {
        match self {
            Self::Identity(identity) => {
                Recipient::Identity(Identity::parse(identity.to_string().expose_secret()).unwrap())
            }
            Self::Passphrase(passphrase, _) => Recipient::Passphrase { passphrase, work: WORK },
        }
    }

    fn written_by_us(&self, plain: &[u8]) -> Vec<u8> {
        encrypt(&self.ours(), plain).unwrap().to_vec()
    }

    fn written_by_reference(&self, plain: &[u8]) -> Vec<u8> {
        let recipient: Box<dyn age::Recipient> = match self {
            Self::Identity(identity) => Box::new(identity.to_public()),
            Self::Passphrase(passphrase, _) => {
                let mut recipient = age::scrypt::Recipient::new(passphrase.clone());
                recipient.set_work_factor(WORK);
                Box::new(recipient)
            }
        };
        let encryptor = age::Encryptor::with_recipients(iter::once(&*recipient)).unwrap();
        let mut bytes = Vec::new();
        let mut writer = encryptor.wrap_output(&mut bytes).unwrap();
        writer.write_all(plain).unwrap();
        writer.finish().unwrap();
        bytes
    }

    fn opened_by_us(&self, bytes: &[u8]) -> Result<Vec<u8>, OpenError> {
        EncryptedBytes::parse(bytes)?.open(&self.ours()).map(|plain| plain.to_vec())
    }

    fn opened_by_reference(&self, bytes: &[u8]) -> Result<Vec<u8>, OpenError> {
        let identity: &dyn age::Identity = match self {
            Self::Identity(identity) => identity,
            Self::Passphrase(_, identity) => &**identity,
        };
        let mut plain = Vec::new();
        let opened = Decryptor::new_buffered(bytes)
            .and_then(|decryptor| decryptor.decrypt(iter::once(identity)))
            .and_then(|mut reader| Ok(reader.read_to_end(&mut plain).map(drop)?));
        opened.map(|()| plain).map_err(class)
    }
}

/// What we call an error of the reference.
fn class(error: DecryptError) -> OpenError {
    match error {
        DecryptError::NoMatchingKeys => OpenError::NoMatchingIdentity,
        DecryptError::KeyDecryptionFailed | DecryptError::DecryptionFailed => OpenError::WrongPassphrase,
        DecryptError::Io(error) if error.kind() == ErrorKind::UnexpectedEof => OpenError::Truncated,
        DecryptError::InvalidHeader | DecryptError::UnknownFormat => OpenError::InvalidHeader,
        DecryptError::ExcessiveWork { .. } => OpenError::ExcessiveWork,
        _ => OpenError::NotAuthentic,
    }
}

/// Whether the key is wrong, and not the file.
fn wrong_key(error: OpenError) -> bool {
    matches!(error, OpenError::NoMatchingIdentity | OpenError::WrongPassphrase)
}

fn plain(size: usize) -> Vec<u8> {
    (0..size).map(|place| (place % 251) as u8).collect()
}

#[test]
fn what_we_write_the_reference_opens() {
    for pair in Pair::both() {
        for size in SIZES {
            let bytes = pair.written_by_us(&plain(size));
            assert!(pair.opened_by_reference(&bytes) == Ok(plain(size)), "{size} bytes");
            assert!(pair.opened_by_us(&bytes) == Ok(plain(size)), "{size} bytes");
        }
    }
}

#[test]
fn what_the_reference_writes_we_open() {
    for pair in Pair::both() {
        for size in SIZES {
            let bytes = pair.written_by_reference(&plain(size));
            assert!(pair.opened_by_us(&bytes) == Ok(plain(size)), "{size} bytes");
        }
    }
}

/// The reference adds a stanza of random length that nobody can open. It is skipped, whatever it is.
#[test]
fn stanzas_of_other_kinds_are_skipped() {
    let pair = Pair::identity();
    for _ in 0..200 {
        let bytes = pair.written_by_reference(b"text");
        assert_eq!(pair.opened_by_us(&bytes), Ok(b"text".to_vec()), "{}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn identities_are_the_same_text() {
    for _ in 0..20 {
        let theirs = age::x25519::Identity::generate();
        let ours = Identity::parse(theirs.to_string().expose_secret()).unwrap();
        assert_eq!(*ours.to_text().unwrap(), theirs.to_string().expose_secret());
        let made = Identity::generate().unwrap().to_text().unwrap();
        let read: age::x25519::Identity = made.parse().unwrap();
        assert_eq!(read.to_string().expose_secret(), *made);
    }
}

#[test]
fn a_text_that_is_not_an_identity_is_refused() {
    const TEXT: &str = "AGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33";
    assert!(Identity::parse(TEXT).is_some() && Identity::parse(&TEXT.to_lowercase()).is_some());
    for place in 0..TEXT.len() {
        let mut changed = TEXT.as_bytes().to_vec();
        changed[place] = if changed[place] == b'Q' { b'P' } else { b'Q' };
        assert!(Identity::parse(std::str::from_utf8(&changed).unwrap()).is_none(), "character {place}");
        assert!(Identity::parse(&TEXT[..place]).is_none(), "{place} characters");
    }
    let mixed = TEXT.replace("GQ", "gq");
    let recipient = "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa";
    for wrong in [&mixed, recipient, "", "AGE-SECRET-KEY-1", &format!("{TEXT} "), &format!("{TEXT}{TEXT}")] {
        assert!(Identity::parse(wrong).is_none(), "{wrong}");
    }
}

/// The classes are those that a user sees: a wrong key is one thing, damage another.
#[test]
fn a_byte_that_was_changed_anywhere_is_refused_as_by_the_reference() {
    for pair in Pair::both() {
        for whole in [pair.written_by_us(b"the secrets"), pair.written_by_reference(b"the secrets")] {
            for (place, mask) in (0..whole.len()).flat_map(|place| [1, 0x80].map(|mask| (place, mask))) {
                let mut changed = whole.clone();
                changed[place] ^= mask;
                let ours = pair.opened_by_us(&changed).unwrap_err();
                let theirs = pair.opened_by_reference(&changed).unwrap_err();
                let file = String::from_utf8_lossy(&changed);
                assert_eq!(wrong_key(ours), wrong_key(theirs), "byte {place}: {ours:?}, {theirs:?}\n{file}");
            }
        }
    }
}

#[test]
fn a_file_that_ends_early_is_refused_as_by_the_reference() {
    for pair in Pair::both() {
        let whole = pair.written_by_us(b"the secrets");
        for length in 0..whole.len() {
            let ours = pair.opened_by_us(&whole[..length]).unwrap_err();
            assert_eq!(ours, pair.opened_by_reference(&whole[..length]).unwrap_err(), "{length} bytes");
        }
        let whole = pair.written_by_us(&plain(200_000));
        let payload = whole.len() - (200_000 + 4 * 16);
        let chunk = 65_536 + 16;
        for cut in
            [payload, payload + 1, payload + 16, payload + chunk - 1, payload + chunk, payload + 3 * chunk]
        {
            let ours = pair.opened_by_us(&whole[..cut]).unwrap_err();
            assert_eq!(ours, pair.opened_by_reference(&whole[..cut]).unwrap_err(), "{cut} bytes");
        }
        assert_eq!(pair.opened_by_us(&whole[..payload + chunk]), Err(OpenError::Truncated));
    }
}

#[test]
fn chunks_in_another_order_and_more_at_the_end_are_refused() {
    let pair = Pair::identity();
    let chunk = 65_536 + 16;
    for size in [65_536, 131_072, 131_073] {
        let whole = pair.written_by_us(&plain(size));
        let header = whole.len() - (size + size.div_ceil(65_536) * 16);
        for more in [&b"x"[..], &[0; 16], &whole[header..header + chunk]] {
            assert_eq!(pair.opened_by_us(&[&whole, more].concat()), Err(OpenError::NotAuthentic), "{size}");
        }
    }
    let mut swapped = pair.written_by_us(&plain(131_073));
    let payload = swapped.len() - (131_073 + 3 * 16);
    let (first, second) = swapped[payload..payload + 2 * chunk].split_at_mut(chunk);
    first.swap_with_slice(second);
    assert_eq!(pair.opened_by_us(&swapped), Err(OpenError::NotAuthentic));
}

#[test]
fn another_key_is_refused_as_by_the_reference() {
    let [identity, passphrase] = Pair::both();
    let [other, _] = Pair::both();
    let bytes = identity.written_by_us(b"text");
    assert_eq!(other.opened_by_us(&bytes), Err(OpenError::NoMatchingIdentity));
    assert_eq!(other.opened_by_reference(&bytes), Err(OpenError::NoMatchingIdentity));
    let other = Pair::passphrase("wrong horse");
    let bytes = passphrase.written_by_us(b"text");
    assert_eq!(other.opened_by_us(&bytes), Err(OpenError::WrongPassphrase));
    assert_eq!(other.opened_by_reference(&bytes), Err(OpenError::WrongPassphrase));
}

/// What a header that was changed by hand is refused with, by us and by the reference.
fn refused(pair: &Pair, bytes: &[u8], from: &str, to: &str) -> OpenError {
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
    let changed = [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat();
    let ours = pair.opened_by_us(&changed).unwrap_err();
    let theirs = pair.opened_by_reference(&changed).unwrap_err();
    assert_eq!(wrong_key(ours), wrong_key(theirs), "{from:?} to {to:?}: {ours:?}, {theirs:?}");
    ours
}

/// The words of the first stanza's line, and its body.
fn first_stanza(bytes: &[u8]) -> (Vec<String>, String) {
    let end = bytes.windows(4).position(|window| window == b"\n---").unwrap();
    let header = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = header.lines().skip(1);
    let words = lines.next().unwrap().split(' ').skip(1).map(str::to_owned).collect();
    (words, lines.next().unwrap().to_owned())
}

#[test]
fn a_header_that_is_not_canonical_is_refused() {
    let pair = Pair::identity();
    let bytes = pair.written_by_us(b"text");
    let (words, body) = first_stanza(&bytes);
    let share = &words[1];
    // The last character of 32 bytes in base64 has two bits that must be zero.
    let uncanonical = |text: &str| {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let place = ALPHABET.iter().position(|&sign| Some(&sign) == text.as_bytes().last()).unwrap();
        format!("{}{}", &text[..text.len() - 1], char::from(ALPHABET[place + 1]))
    };
    let zero = BASE64.encode([0; 32]);
    let cases = [
        (share.clone(), uncanonical(share)),
        (share.clone(), format!("{share}=")),
        (share.clone(), format!("{share} extra")),
        (share.clone(), format!(" {share}")),
        (share.clone(), format!("{share} ")),
        (share.clone(), share[..42].to_owned()),
        // A share of small order gives the same secret with every identity.
        (share.clone(), zero),
        (format!(" {share}"), String::new()),
        (body.clone(), uncanonical(&body)),
        (body.clone(), format!("{body}=")),
        (body.clone(), format!("{body}\n")),
        (body.clone(), format!("{}\n{}", &body[..20], &body[20..])),
        (body.clone(), format!("{body}AAAA")),
        (body.clone(), String::new()),
        (format!("{body}\n"), String::new()),
        ("\n--- ".to_owned(), "\n---".to_owned()),
        ("\n--- ".to_owned(), "\n---  ".to_owned()),
        ("\n-> ".to_owned(), "\n->".to_owned()),
        ("\n-> ".to_owned(), "\r\n-> ".to_owned()),
        ("org/v1".to_owned(), "org/v2".to_owned()),
        ("age-".to_owned(), "AGE-".to_owned()),
    ];
    for (from, to) in cases {
        assert_eq!(refused(&pair, &bytes, &from, &to), OpenError::InvalidHeader, "{from:?} to {to:?}");
    }
    let stanza = format!("-> {}\n{body}\n", words.join(" "));
    assert_eq!(refused(&pair, &bytes, &stanza, ""), OpenError::InvalidHeader, "without a stanza");
    let twice = stanza.repeat(2);
    assert_eq!(
        refused(&pair, &bytes, &stanza, &twice),
        OpenError::NotAuthentic,
        "the MAC covers all stanzas"
    );
    let full = format!("-> other\n{}\n{stanza}", "A".repeat(64));
    assert_eq!(refused(&pair, &bytes, &stanza, &full), OpenError::InvalidHeader, "a full last line");
}

#[test]
fn a_passphrase_header_that_is_not_canonical_is_refused() {
    let pair = Pair::passphrase("correct horse");
    let bytes = pair.written_by_us(b"text");
    let (words, body) = first_stanza(&bytes);
    let (line, stanza) = (words.join(" "), format!("-> {}\n{body}\n", words.join(" ")));
    let with = |work: &str| refused(&pair, &bytes, &line, &format!("scrypt {} {work}", words[1]));
    for work in ["0", "04", "+4", "-4", "4x", "256", "300"] {
        assert_eq!(with(work), OpenError::InvalidHeader, "{work}");
    }
    for work in ["21", "63", "255"] {
        assert_eq!(with(work), OpenError::ExcessiveWork, "{work}");
    }
    assert_eq!(with("3"), OpenError::WrongPassphrase);
    for two in [stanza.repeat(2), format!("{stanza}-> other\n\n"), format!("-> X25519 x\n\n{stanza}")] {
        assert_eq!(refused(&pair, &bytes, &stanza, &two), OpenError::InvalidHeader, "{two}");
    }
}

/// A home whose files another version wrote, which used the reference.
#[test]
fn files_of_the_reference_open_and_stay_open_for_it() {
    let content = br#"{"version":1,"secrets":{"TOKEN":"one","telegram.TOKEN":"two"}}"#;
    for pair in Pair::both() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("secrets.age");
        let open = || match &pair {
            Pair::Identity(_) => encrypted(home.path()),
            Pair::Passphrase(passphrase, _) => EncryptedFile::new(home.path(), Some(passphrase.clone())),
        };
        if let Pair::Identity(identity) = &pair {
            let key = home.path().join("secrets.key");
            fs::write(&key, format!("# A comment.\n{}\n", identity.to_string().expose_secret())).unwrap();
            set_mode(&key, 0o600);
        }
        fs::write(&file, pair.written_by_reference(content)).unwrap();
        set_mode(&file, 0o600);
        assert_eq!(got(&open(), "TOKEN").as_deref(), Some("one"));
        assert_eq!(got(&open(), "telegram.TOKEN").as_deref(), Some("two"));
        put(&open(), "TOKEN", "three");
        let plain = Zeroizing::new(pair.opened_by_reference(&fs::read(&file).unwrap()).unwrap());
        let expected = &br#"{"version":1,"secrets":{"TOKEN":"three","telegram.TOKEN":"two"}}"#[..];
        assert_eq!(String::from_utf8_lossy(&plain), String::from_utf8_lossy(expected));
    }
}

proptest! {
    #[test]
    fn any_text_comes_back(plain: Vec<u8>) {
        let pair = Pair::identity();
        prop_assert_eq!(pair.opened_by_us(&pair.written_by_us(&plain)), Ok(plain));
    }

    #[test]
    fn any_header_is_read_or_refused(lines in "(-> [ -~]{0,40}\n|[A-Za-z0-9+/=]{0,70}\n|--- [A-Za-z0-9+/]{43}\n){0,8}", rest: Vec<u8>) {
        let bytes = [b"age-encryption.org/v1\n", lines.as_bytes(), &rest].concat();
        let pair = Pair::identity();
        prop_assert!(pair.opened_by_us(&bytes).is_err());
    }
}
