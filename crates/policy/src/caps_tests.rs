//! What may be spent.

use holdfast_contract::ids::Millis;
use holdfast_contract::message::{LimitKind, Limits, Spent};

use crate::testing::policy;
use crate::{Cap, Dollars};

#[test]
fn caps_only_ever_narrow() {
    let caps = policy("caps: { session: { tokens: 1000, dollars: 0.25, time_ms: 60000 } }").caps();
    let open = caps.narrow(Limits::default());
    assert_eq!((open.session_tokens, open.session_cost_micros), (Some(1000), Some(250_000)));
    assert_eq!(open.session_time, Some(Millis(60_000)));
    assert_eq!(open.max_tokens, Limits::default().max_tokens);
    let strict = Limits {
        session_tokens: Some(10),
        session_cost_micros: Some(1),
        session_time: Some(Millis(1)),
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
fn what_is_left_out_has_no_bound() {
    let cap = Cap { tokens: Some(10), dollars: Some(Dollars { micros: 20 }), ..Cap::default() };
    let kinds = [LimitKind::DayTokens, LimitKind::DayCost, LimitKind::DayTime, LimitKind::DayToolCalls];
    let spent = Spent { turns: 1, tokens: 2, cost_micros: 3, tool_calls: 4, time: Millis(5) };
    let [tokens, cost, time, calls] = cap.bounds(kinds, &spent);
    assert_eq!((tokens, cost), ((kinds[0], Some(10), 2), (kinds[1], Some(20), 3)));
    assert_eq!((time, calls), ((kinds[2], None, 5), (kinds[3], None, 4)));
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
