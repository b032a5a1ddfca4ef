//! What is written here must be what others take RFC 8785 for.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::*;

fn same<T: Serialize>(value: &T) {
    let (ours, others) = (write(value).unwrap(), serde_json_canonicalizer::to_vec(value).unwrap());
    assert_eq!(String::from_utf8(ours), String::from_utf8(others));
}

#[test]
fn values_are_written_as_others_write_them() {
    let odd = "with \"quotes\" \\ / and \t\r\n\u{8}\u{c}\u{0}\u{1f}\u{7f} ünï 🪢 \u{2028}";
    same(&json!(null));
    same(&json!([true, false, [], {}, "", odd, [[{ "b": [], "a": {} }]]]));
    same(&json!([0, -1, 9007199254740991u64, 9007199254740992u64, u64::MAX, i64::MIN, -9007199254740993i64]));
    same(&json!([0.0, -0.0, 1.5, 1e21, 1e-7, 123456789012345680000.0, f64::MIN_POSITIVE, f64::MAX]));
    same(&(1u8, -1i8, 1u16, -1i16, 1u32, -1i32, u128::MAX, i128::MIN, 0.1f32, 'é', Some("x"), ()));
    same(&[f64::NAN]);
}

#[test]
fn fields_stand_in_the_order_of_their_utf_16_units() {
    same(&json!({ "z": 1, "a": { "y": 1, "b": 2 }, "": 0, "A": 3, "aa": 4, "a\\": 5, "a\"": 6, "a\n": 7 }));
    // The first stands before the second by its units and after it by its bytes.
    same(&json!({ "🪢": 1, "\u{fb33}": 2, "é": 3, "e": 4, "\u{20ac}": 5, "\u{80}": 6, "1": 7, "\r": 8 }));
    same(&BTreeMap::from([(10, "ten"), (9, "nine"), (-1, "less")]));
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Variant {
    Unit,
    Newtype(u64),
    Tuple(u64, String),
    Struct { zeta: u64, alpha: Option<u64> },
}

#[derive(Serialize)]
struct Flat {
    zeta: Vec<Variant>,
    #[serde(flatten)]
    more: BTreeMap<String, u64>,
    alpha: (),
}

#[test]
fn types_are_written_as_others_write_them() {
    let zeta = vec![
        Variant::Unit,
        Variant::Newtype(1),
        Variant::Tuple(2, "x".into()),
        Variant::Struct { zeta: 3, alpha: None },
    ];
    same(&Flat { zeta, more: [("middle".into(), 1), ("a".into(), 2)].into(), alpha: () });
}

#[test]
fn what_others_refuse_is_refused() {
    let twice = Flat { zeta: Vec::new(), more: [("alpha".into(), 1)].into(), alpha: () };
    let nameless = BTreeMap::from([((1, 2), 3)]);
    assert!(write(&twice).is_err() && serde_json_canonicalizer::to_vec(&twice).is_err());
    assert!(write(&nameless).is_err() && serde_json_canonicalizer::to_vec(&nameless).is_err());
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % sides
    }

    fn text(&mut self) -> String {
        let letters = ['a', 'b', 'Z', '_', '"', '\\', '\n', '\u{1}', 'é', '\u{fb33}', '🪢', '0'];
        (0..self.roll(5)).map(|_| letters[self.roll(letters.len() as u64) as usize]).collect()
    }

    fn value(&mut self, depth: u64) -> Value {
        match self.roll(if depth == 0 { 5 } else { 7 }) {
            0 => json!(self.roll(2) == 0),
            1 => json!(self.0),
            2 => json!(self.0 as i64 >> self.roll(64)),
            3 => json!(f64::from_bits(self.0)),
            4 => json!(self.text()),
            5 => (0..self.roll(4)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object(
                (0..self.roll(6)).map(|_| (self.text(), self.value(depth - 1))).collect::<Map<_, _>>(),
            ),
        }
    }
}

#[test]
fn any_value_is_written_as_others_write_it() {
    let mut dice = Dice(1);
    for _ in 0..5_000 {
        same(&dice.value(4));
    }
}
