#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

/// A value whose canonical form has so many bytes.
fn of_bytes(bytes: usize) -> Content {
    Content::text("x".repeat(bytes - 2))
}

#[test]
fn a_reference_is_an_error_and_never_an_empty_text() {
    let stored = serde_json::to_value(of_bytes(INLINE_LIMIT + 1)).unwrap();
    assert_eq!(stored["blob"]["bytes"], 4097);
    let error = serde_json::from_value::<Content>(stored).unwrap_err().to_string();
    assert!(error.contains("of 4097 bytes, which was not loaded"), "{error}");
}

#[test]
fn whole_values_are_in_place_however_large() {
    #[derive(Serialize)]
    struct Kept {
        #[serde(serialize_with = "whole")]
        config: Content,
    }
    for bytes in [3, INLINE_LIMIT, INLINE_LIMIT + 1, 200_000] {
        let content = of_bytes(bytes);
        let value = json!({ "json": content.value() });
        let nested = (Some(&content), [&content]);
        assert_eq!(to_whole_json(&nested).unwrap(), json!([value, [value]]));
        assert_eq!(
            serde_json::to_value(Kept { config: content.clone() }).unwrap(),
            json!({ "config": value })
        );
        assert_eq!(serde_json::from_value::<Content>(value).unwrap(), content);
    }
    let large = of_bytes(5000);
    assert!(to_whole_json(&std::collections::BTreeMap::from([((1, 2), 3)])).is_err(), "no JSON");
    assert!(serde_json::to_value(large).unwrap()["blob"].is_object(), "the stored form is back");
}

#[test]
fn references_are_loaded_and_values_of_others_are_left_alone() {
    let reference = serde_json::to_value(of_bytes(5000)).unwrap();
    let mut json = json!({
        "one": reference,
        "many": [{ "text": reference }, { "json": reference }],
        "blob": { "blob": 1 },
        "not": { "blob": { "digest": "short", "bytes": 1 } },
        "more": { "blob": reference["blob"], "beside": 1 },
    });
    let expected = json!({
        "one": { "json": 5000 },
        "many": [{ "text": { "json": 5000 } }, { "json": reference }],
        "blob": { "blob": 1 },
        "not": { "blob": { "digest": "short", "bytes": 1 } },
        "more": { "blob": reference["blob"], "beside": 1 },
    });
    load_references(&mut json, &mut |blob| Ok::<_, ()>(json!(blob.bytes))).unwrap();
    assert_eq!(json, expected);
    let failed = load_references(&mut json!([reference]), &mut |blob| Err(blob.bytes));
    assert_eq!(failed, Err(5000));
}

#[test]
fn the_json_of_a_content_is_canonical_whether_serde_json_wrote_it_or_not() {
    let characters: String = (0..0x300).filter_map(char::from_u32).chain(['\u{2028}', '🪢']).collect();
    for value in [
        json!({ "b": [1, -1, true, null, {}, []], "a": characters }),
        json!([0, MAX_EXACT_INTEGER, -(MAX_EXACT_INTEGER as i64), u64::MAX, i64::MIN]),
        json!({ "z": 1.5, "a": 23.0, "é": "\u{7f}" }),
        json!({ "\u{e000}": 1, "🪢": 2 }),
    ] {
        let content = Content::new(value);
        assert_eq!(content.json().as_bytes(), canonical(content.value()).unwrap());
    }
}
