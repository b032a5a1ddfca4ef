//! What is left of limits.

use holdfast_contract::ids::Millis;
use holdfast_contract::message::{Limits, Spent};

use crate::limits::{left, share, within};

#[test]
fn what_is_left_of_a_sessions_time_is_not_what_is_left_of_a_turns() {
    let all = Limits { time_budget: Millis(5_000), session_time: Some(Millis(60_000)), ..Limits::default() };
    let spent = Spent { time: Millis(20_000), ..Spent::default() };
    let granted = within(Limits::default(), &left(&all, &Spent::default(), &spent, Millis(3_000)));
    assert_eq!((granted.time_budget, granted.session_time), (Millis(3_000), Some(Millis(40_000))));
    let own = Limits { session_time: Some(Millis(10_000)), ..Limits::default() };
    let granted = within(own, &left(&all, &Spent::default(), &spent, Millis(3_000)));
    assert_eq!(granted.session_time, Some(Millis(10_000)));
}

#[test]
fn a_share_divides_what_can_be_used_up_and_not_the_time() {
    let all = Limits {
        max_tokens: 100,
        max_tool_calls: Some(5),
        session_time: Some(Millis(60_000)),
        ..Limits::default()
    };
    let third = share(all, 3);
    assert_eq!((third.max_tokens, third.max_tool_calls, third.max_cost_micros), (33, Some(1), None));
    assert_eq!((third.time_budget, third.session_time), (all.time_budget, all.session_time));
    assert_eq!(share(all, 0), all, "nobody to share with");
}
