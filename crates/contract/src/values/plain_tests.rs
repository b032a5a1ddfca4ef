//! What is written plainly must be what serde_json writes.

use serde_json::json;

use super::*;

#[test]
fn every_character_is_written_as_serde_json_writes_it() {
    for character in (0..0x300).filter_map(char::from_u32).chain(['\u{2028}', '🪢']) {
        // At every place within a stride and across two of them.
        for before in 0..STRIDE + 2 {
            let text = format!("{}{character}{}", "x".repeat(before), "y".repeat(STRIDE));
            let value = json!({ &text: [text, before, -1, true, false, null, {}, []] });
            assert_eq!(write(&value), Some(value.to_string()));
        }
    }
}

#[test]
fn whole_numbers_are_written_as_serde_json_writes_them() {
    for value in [json!(0), json!(u64::MAX), json!(i64::MIN), json!(-1), json!([[], {}, [[1]]])] {
        assert_eq!(write(&value), Some(value.to_string()));
    }
    assert_eq!(write(&json!([1.5])), None);
}
