//! What is left of limits.

use holdfast_contract::ids::Millis;
use holdfast_contract::message::{Limits, Spent};

use crate::limits::remaining;

#[test]
fn what_is_left_of_a_sessions_time_is_not_what_is_left_of_a_turns() {
    let all = Limits { time_budget: Millis(5_000), session_time: Some(Millis(60_000)), ..Limits::default() };
    let spent = Spent { time: Millis(20_000), ..Spent::default() };
    let left = remaining(&all, Limits::default(), &Spent::default(), &spent, Millis(3_000));
    assert_eq!((left.time_budget, left.session_time), (Millis(3_000), Some(Millis(40_000))));
    let own = Limits { session_time: Some(Millis(10_000)), ..Limits::default() };
    let left = remaining(&all, own, &Spent::default(), &spent, Millis(3_000));
    assert_eq!(left.session_time, Some(Millis(10_000)));
}
