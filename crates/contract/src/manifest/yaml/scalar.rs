//! What a scalar without quotes stands for: YAML 1.2's core schema, and where the type is known, what people
//! write besides.

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

    /// The JSON of it, given the text it was written as. Integers beyond 64 bits stay text; what is not
    /// finite has no JSON.
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

/// A boolean as people write it where one is expected.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// A whole number as people write it where one is expected: `50000` and `50_000`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_mean_what_yaml_1_2_says() {
        for (text, expected) in [
            ("", Plain::Null),
            ("~", Plain::Null),
            ("True", Plain::Boolean(true)),
            ("yes", Plain::Text),
            ("12", Plain::Integer(12)),
            ("-12", Plain::Integer(-12)),
            ("007", Plain::Integer(7)),
            ("0x1F", Plain::Integer(31)),
            ("0o17", Plain::Integer(15)),
            ("0x", Plain::Text),
            ("1.10", Plain::Float(1.1)),
            (".5", Plain::Float(0.5)),
            ("1e3", Plain::Float(1000.0)),
            ("-.inf", Plain::Float(f64::NEG_INFINITY)),
            ("1.0.0", Plain::Text),
            ("1_000", Plain::Text),
            ("inf", Plain::Text),
            ("nan", Plain::Text),
            (".", Plain::Text),
            ("-", Plain::Text),
            ("main:Class", Plain::Text),
        ] {
            assert_eq!(Plain::of(text), expected, "{text:?}");
        }
    }

    #[test]
    fn json_keeps_numbers_exact() {
        let json = |text| Plain::of(text).to_json(text);
        assert_eq!(json("18446744073709551615"), Some(Value::from(u64::MAX)));
        assert_eq!(json("99999999999999999999"), Some(Value::from("99999999999999999999")));
        assert_eq!(json(".nan"), None);
    }

    #[test]
    fn known_types_are_read_generously() {
        assert_eq!(boolean("Yes"), Some(true));
        assert_eq!(boolean("off"), Some(false));
        assert_eq!(boolean("1"), None);
        assert_eq!(integer("50_000"), Some(50_000));
        assert_eq!(integer("_50"), None);
        assert_eq!(integer("5.0"), None);
    }
}
