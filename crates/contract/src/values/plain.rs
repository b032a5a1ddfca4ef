//! Writes JSON values whose plain form is their canonical one. A gate is shown a call's arguments in this form while the call waits, so a
//! long text is looked at many bytes at a time.

use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter};

/// Bytes that are looked at together.
const STRIDE: usize = 32;

/// The plain JSON of a value, its fields in the order in which they stand; none for one that has a fraction.
pub(crate) fn write(value: &Value) -> Option<String> {
    let mut out = Vec::with_capacity(64);
    put(&mut out, value)?;
    String::from_utf8(out).ok()
}

fn put(out: &mut Vec<u8>, value: &Value) -> Option<()> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => match number.as_u64() {
            Some(number) => CompactFormatter.write_u64(out, number).ok()?,
            None => CompactFormatter.write_i64(out, number.as_i64()?).ok()?,
        },
        Value::String(text) => string(out, text),
        Value::Array(items) => {
            out.push(b'[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                put(out, item)?;
            }
            out.push(b']');
        }
        Value::Object(fields) => {
            out.push(b'{');
            for (place, (name, field)) in fields.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                string(out, name);
                out.push(b':');
                put(out, field)?;
            }
            out.push(b'}');
        }
    }
    Some(())
}

/// A string, escaped as RFC 8785 has it.
fn string(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    for bytes in text.as_bytes().chunks(STRIDE) {
        match bytes.iter().fold(false, |any, byte| any | is_escaped(*byte)) {
            false => out.extend_from_slice(bytes),
            true => bytes.iter().for_each(|byte| escape(out, *byte)),
        }
    }
    out.push(b'"');
}

fn is_escaped(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        0..0x20 => {
            let digits = b"0123456789abcdef";
            let (high, low) = (digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]);
            return out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        }
        _ => return out.push(byte),
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;
