//! Events must have the canonical form that everything else has.

use serde_json::json;

use super::*;
use crate::content::INLINE_LIMIT;
use crate::digest::canonical as general;

#[test]
fn an_event_has_the_form_that_the_general_way_gives_it() {
    let odd = "with \"quotes\" \\ / and \t\r\n\u{8}\u{c}\u{0}\u{1f}\u{7f} ünï 🪢 \u{2028}";
    let texts = [None, Some(String::new()), Some("plain".to_owned()), Some(odd.to_owned())];
    let payloads = [
        json!(null),
        json!({ "z": 1, "a": [1.5, 1e21, -0.0, 1e-7, u64::MAX, "é"], "é": { "b": true, "a": odd } }),
        json!(odd),
        json!("x".repeat(INLINE_LIMIT - 2)),
        json!("x".repeat(INLINE_LIMIT - 1)),
        json!({ "large": odd.repeat(500) }),
    ];
    for payload in &payloads {
        for key in &texts {
            for correlation in &texts {
                for idempotency in &texts {
                    let event = EventPublished {
                        topic: "reminder.dü\"e".into(),
                        payload: Content::new(payload.clone()),
                        key: key.clone(),
                        correlation: correlation.clone(),
                        idempotency: idempotency.clone(),
                    };
                    let expected = general(&event).unwrap();
                    let made = canonical(&Body::from(event)).unwrap();
                    assert_eq!(String::from_utf8(made), String::from_utf8(expected));
                }
            }
        }
    }
}
