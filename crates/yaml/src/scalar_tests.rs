use serde_json::Value;

use super::scalar::{Plain, boolean, integer};

#[test]
fn plain_scalars_follow_the_yaml_1_2_core_schema() {
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
fn booleans_and_integers_accept_common_spellings() {
    assert_eq!(boolean("Yes"), Some(true));
    assert_eq!(boolean("off"), Some(false));
    assert_eq!(boolean("1"), None);
    assert_eq!(integer("50_000"), Some(50_000));
    assert_eq!(integer("_50"), None);
    assert_eq!(integer("5.0"), None);
}
