//! What may be spent.

use holdfast_contract::ids::Millis;
use holdfast_contract::message::Limits;

use crate::testing::policy;
use crate::{Cap, Dollars};

#[test]
fn caps_only_ever_narrow() {
    let caps = policy("caps: { session: { tokens: 1000, dollars: 0.25, time_ms: 60000 } }").caps();
    let open = caps.narrow(Limits::default());
    assert_eq!((open.session_tokens, open.session_cost_micros), (Some(1000), Some(250_000)));
    assert_eq!(open.time_budget, Millis(60_000));
    assert_eq!(open.max_tokens, Limits::default().max_tokens);
    let strict = Limits {
        session_tokens: Some(10),
        session_cost_micros: Some(1),
        time_budget: Millis(1),
        ..Limits::default()
    };
    assert_eq!(caps.narrow(strict), strict);
}

#[test]
fn a_profile_that_goes_ahead_is_bounded_unless_the_policy_says_how() {
    let bounded = policy("profile: full-auto").caps().session;
    assert_eq!(bounded.tokens, Some(2_000_000));
    assert_eq!(bounded.dollars, Some(Dollars { micros: 20_000_000 }));
    let own = policy("{ profile: full-auto, caps: { session: { tokens: 9000000 } } }").caps().session;
    assert_eq!((own.tokens, own.dollars), (Some(9_000_000), bounded.dollars));
    assert!(policy("profile: standard").caps().is_open());
}

#[test]
fn a_cap_is_exceeded_by_what_is_more_than_it() {
    let cap = Cap { tokens: Some(10), dollars: Some(Dollars { micros: 10 }), time_ms: Some(Millis(10)) };
    let at = Dollars { micros: 10 };
    assert!(!cap.exceeded_by(10, at, Millis(10)));
    assert!(cap.exceeded_by(11, at, Millis(10)));
    assert!(cap.exceeded_by(10, Dollars { micros: 11 }, Millis(10)));
    assert!(cap.exceeded_by(10, at, Millis(11)));
    assert!(!Cap::default().exceeded_by(u64::MAX, Dollars { micros: u64::MAX }, Millis(u64::MAX)));
}

#[test]
fn money_is_exact_to_the_millionth() {
    for (written, micros) in
        [("0", 0), ("0.1", 100_000), ("1e-6", 1), ("2.5", 2_500_000), ("1000000000", 1_000_000_000_000_000)]
    {
        let dollars: Dollars = serde_json::from_str(written).unwrap();
        assert_eq!(dollars.micros, micros, "{written}");
        let again: Dollars = serde_json::from_value(serde_json::to_value(dollars).unwrap()).unwrap();
        assert_eq!(again, dollars);
    }
    for wrong in ["-1", "1e10", "\"1\""] {
        assert!(serde_json::from_str::<Dollars>(wrong).is_err(), "{wrong}");
    }
}
