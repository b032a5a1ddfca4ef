//! The meaning of a scalar without quotes: YAML 1.2's core schema, and common other spellings where the type
//! is known.

use serde_json::{Number, Value};

/// The meaning of a scalar without quotes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Plain {
    Null,
    Boolean(bool),
    Integer(i128),
    Float(f64),
    Text,
}

impl Plain {
    pub(super) fn of(text: &str) -> Self {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => Self::Null,
            "true" | "True" | "TRUE" => Self::Boolean(true),
            "false" | "False" | "FALSE" => Self::Boolean(false),
            ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Self::Float(f64::INFINITY),
            "-.inf" | "-.Inf" | "-.INF" => Self::Float(f64::NEG_INFINITY),
            ".nan" | ".NaN" | ".NAN" => Self::Float(f64::NAN),
            _ => number(text),
        }
    }

    /// Its JSON value, given the text it was written as. Integers beyond 64 bits stay text; numbers that are
    /// not finite have no JSON value.
    pub(super) fn to_json(self, text: &str) -> Option<Value> {
        Some(match self {
            Self::Null => Value::Null,
            Self::Boolean(value) => Value::Bool(value),
            Self::Integer(value) => Number::from_i128(value).map_or_else(|| Value::from(text), Value::Number),
            Self::Float(value) => Value::Number(Number::from_f64(value)?),
            Self::Text => Value::from(text),
        })
    }
}

fn number(text: &str) -> Plain {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let radix = |prefix, radix| text.strip_prefix(prefix).and_then(|digits| unsigned_digits(digits, radix));
    if let Some(value) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return Plain::Integer(value);
    }
    if unsigned.is_empty() || !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return Plain::Text;
    }
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map_or(Plain::Text, Plain::Integer);
    }
    let shaped = unsigned
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    match text.parse() {
        Ok(value) if shaped => Plain::Float(value),
        _ => Plain::Text,
    }
}

fn unsigned_digits(digits: &str, radix: u32) -> Option<i128> {
    digits.chars().all(|digit| digit.is_digit(radix)).then(|| i128::from_str_radix(digits, radix).ok())?
}

/// A boolean where one is expected: `yes`, `no`, `on` and `off` too.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// A whole number where one is expected: `50000` and `50_000`.
pub(super) fn integer(text: &str) -> Option<i128> {
    let grouped = text
        .as_bytes()
        .windows(3)
        .any(|letters| letters[1] == b'_' && letters[0].is_ascii_digit() && letters[2].is_ascii_digit());
    match Plain::of(text) {
        Plain::Integer(value) => Some(value),
        Plain::Text if grouped => match Plain::of(&text.replace('_', "")) {
            Plain::Integer(value) => Some(value),
            _ => None,
        },
        _ => None,
    }
}
