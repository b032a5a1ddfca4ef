//! The forms in which a value travels: as it is, as JSON, in addresses, in base64 and in hexadecimal digits.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::SHORTEST;

/// Every form of a value that is looked for. A value in a file of its own often ends with a line break that is not sent, so it is looked for without
/// as well.
pub(super) fn of(value: &str) -> Vec<String> {
    let mut forms = [forms(value), forms(value.trim())].concat();
    forms.retain(|form| form.len() >= SHORTEST);
    forms.sort_unstable();
    forms.dedup();
    forms
}

fn forms(value: &str) -> Vec<String> {
    let json = json(value);
    let mut forms = vec![value.to_owned(), self::json(&json), json.replace('/', "\\/"), json];
    for upper in [false, true] {
        forms.push(ascii_json(value, upper));
        forms.push(hex(value, upper));
        let encoded = url(value, upper);
        forms.push(encoded.replace("%20", "+"));
        forms.push(encoded);
    }
    forms.extend(base64(value));
    forms
}

/// As it is written in a JSON string.
fn json(value: &str) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    text.get(1..text.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// The same in pure ASCII, as some write it.
fn ascii_json(value: &str, upper: bool) -> String {
    let mut out = String::new();
    for sign in json(value).chars() {
        if sign.is_ascii() {
            out.push(sign)
        } else {
            out.extend(
                sign.encode_utf16(&mut [0; 2])
                    .iter()
                    .map(|unit| if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") }),
            )
        }
    }
    out
}

fn hex(value: &str, upper: bool) -> String {
    value.bytes().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }).collect()
}

/// Everything but letters, digits and `-._~` as `%` and two digits.
fn url(value: &str, upper: bool) -> String {
    let encode = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ if upper => format!("%{byte:02X}"),
        _ => format!("%{byte:02x}"),
    };
    value.bytes().map(encode).collect()
}

/// As base64 alone, and inside of a longer text that is base64, such as `user:password`: there, it begins at one of three places within a group, and
/// the signs at both ends that also stand for something else are left out.
fn base64(value: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for engine in [STANDARD, URL_SAFE] {
        forms.push(engine.encode(value));
        for before in 0..3_usize {
            let padded = [&vec![0; before][..], value.as_bytes()].concat();
            let whole = padded.len() * 8 / 6;
            let encoded = engine.encode(&padded);
            let shared = (before * 8).div_ceil(6);
            forms.extend(encoded.get(shared..whole).map(str::to_owned));
        }
    }
    // What is left of a short value may be a word.
    forms.retain(|form| form.len() > SHORTEST);
    forms
}
