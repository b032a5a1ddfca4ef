//! Credentials that can be told by where they stand: after a name that says so, in an address, in a header. What only stands for a
//! credential, such as `${TOKEN}` or `your-key-here`, does not count.

use crate::shapes::Found;

/// The last words of names whose values are credentials, and what those are.
const NAMES: &[(&str, &str)] = &[
    ("password", "password"),
    ("passwd", "password"),
    ("passphrase", "password"),
    ("pwd", "password"),
    ("apikey", "key"),
    ("accesskey", "key"),
    ("secretkey", "key"),
    ("privatekey", "key"),
    ("secretaccesskey", "key"),
    ("accountkey", "key"),
    ("sharedaccesskey", "key"),
    ("secret", "secret"),
    ("token", "token"),
    ("credential", "secret"),
    ("credentials", "secret"),
];

/// The credentials in a text that can be told by their places.
pub fn find(text: &str) -> Vec<Found> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        let hit = match byte {
            b'=' => assigned(text, at),
            b':' if bytes[at..].starts_with(b"://") => in_address(text, at),
            b':' => assigned(text, at).or_else(|| in_header(text, at)),
            _ => None,
        };
        found.extend(hit);
    }
    found
}

/// The kind of credential that a value with a name of its own is; `None` if it is not one.
pub fn named(name: &str, value: &str) -> Option<&'static str> {
    let kind = kind_of(name)?;
    (!value.contains(char::is_whitespace) && is_random(value)).then_some(kind)
}

fn kind_of(name: &str) -> Option<&'static str> {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect();
    NAMES.iter().find(|(last, _)| plain.ends_with(last)).map(|(_, kind)| *kind)
}

/// `name = value`, in any of the usual ways to write it.
fn assigned(text: &str, at: usize) -> Option<Found> {
    let bytes = text.as_bytes();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let mut end = at;
    while end > 0 && matches!(bytes[end - 1], b' ' | b'"' | b'\'' | b'\\') && at - end < 4 {
        end -= 1;
    }
    let length = bytes[..end].iter().rev().take(64).take_while(|byte| is_name(byte)).count();
    let kind = kind_of(&text[end - length..end])?;
    let mut start = at + 1;
    while start < bytes.len() && matches!(bytes[start], b' ' | b'"' | b'\'' | b'`' | b'\\' | b'>' | b'=') && start - at < 6
    {
        start += 1;
    }
    let stops = |byte: &u8| {
        byte.is_ascii_whitespace()
            || matches!(byte, b'"' | b'\'' | b'`' | b',' | b';' | b'<' | b'>' | b'(' | b')' | b'{' | b'}' | b'[' | b']' | b'\\' | b'|')
    };
    let length = bytes[start..].iter().take(512).take_while(|byte| !stops(byte)).count();
    // In the query of an address the next parameter begins here.
    let value = text.get(start..start + length)?.split('&').next()?;
    is_random(value).then_some(Found { kind, start, end: start + value.len() })
}

/// `scheme://user:password@host`
fn in_address(text: &str, at: usize) -> Option<Found> {
    let bytes = text.as_bytes();
    let start = at + 3;
    let stops = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'?' | b'#');
    let length = bytes[start..].iter().take(512).take_while(|byte| !stops(byte)).count();
    let authority = text.get(start..start + length)?;
    let (user, _) = authority.rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    let stands_for = ["password", "passwd", "pass", "pwd", "secret", "token", "pw", "x-oauth-basic"];
    if password.len() < 3 || stands_for.contains(&password.to_ascii_lowercase().as_str()) || stands_for_one(password) {
        return None;
    }
    let from = start + name.len() + 1;
    Some(Found { kind: "password", start: from, end: from + password.len() })
}

/// `Authorization: Bearer …`
fn in_header(text: &str, at: usize) -> Option<Found> {
    let before = text.get(at.checked_sub(13)?..at)?;
    if !before.eq_ignore_ascii_case("authorization") {
        return None;
    }
    let rest = &text[at + 1..];
    let scheme = rest.trim_start_matches([' ', '"', '\'']);
    let (name, value) = scheme.split_once(' ')?;
    if !["bearer", "basic", "token", "bot"].contains(&name.to_ascii_lowercase().as_str()) {
        return None;
    }
    let is_token = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '~' | '+' | '/' | '=');
    let token = &value[..value.find(|letter| !is_token(letter)).unwrap_or(value.len())];
    let start = text.len() - value.len();
    (token.len() >= 12 && !stands_for_one(token)).then_some(Found { kind: "token", start, end: start + token.len() })
}

/// Whether a text is more likely a credential than a word, a name or a number.
fn is_random(text: &str) -> bool {
    if text.len() < 8 || stands_for_one(text) {
        return false;
    }
    let count = |is: fn(&u8) -> bool| text.bytes().filter(is).count();
    let (digits, small, capitals) =
        (count(u8::is_ascii_digit), count(u8::is_ascii_lowercase), count(u8::is_ascii_uppercase));
    let others = text.len() - digits - small - capitals;
    // What is put together from words: a path, a name with dots, an expression of a program.
    let joined = text.bytes().filter(|byte| matches!(byte, b'.' | b'/' | b'-' | b'_' | b':')).count();
    let kinds = [digits, small, capitals, others - joined].iter().filter(|count| **count > 0).count();
    let letters = small + capitals;
    if digits == 0 || letters == 0 {
        return false;
    }
    match text.len() {
        8..=15 => kinds >= 3 && joined <= 1 && entropy(text) >= 2.75,
        _ => (kinds >= 3 || digits >= 3 && joined <= 2) && joined * 6 <= text.len() && entropy(text) >= 3.0,
    }
}

/// Whether a text only stands for a credential.
fn stands_for_one(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "example", "your", "xxx", "***", "...", "changeme", "change-me", "change_me", "placeholder", "redacted", "dummy",
        "insert", "replace", "todo", "getenv", "environ", "process.env", "secrets.", "vault:", "<", "${", "{{", "%s", "%(",
        "$(", "sample", "test-token", "fake", "not-a-real", "12345678",
    ];
    let small = text.to_ascii_lowercase();
    text.starts_with('$') || text.starts_with('@') || text.starts_with("//") || WORDS.iter().any(|word| small.contains(word))
}

/// How many bits a character of a text carries, by how often each one is there.
fn entropy(text: &str) -> f32 {
    let mut counts = [0_u16; 256];
    text.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let all = text.len() as f32;
    counts.iter().filter(|count| **count > 0).map(|count| f32::from(*count) / all).map(|share| -share * log2(share)).sum()
}

/// The logarithm to base 2, near enough: its whole part is the exponent, and the rest a fraction of two lines.
fn log2(value: f32) -> f32 {
    let bits = value.to_bits();
    let exponent = ((bits >> 23) & 0xff) as f32 - 127.0;
    let part = f32::from_bits((bits & 0x007f_ffff) | 0x3f80_0000);
    exponent + (-0.344_845 * part + 2.024_665) * part - 1.679_82
}
