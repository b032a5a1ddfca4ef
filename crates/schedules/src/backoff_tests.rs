//! Exponential backoff.

use holdfast_contract::ids::Millis;

use crate::{Backoff, Jitter};

const WHOLE: Jitter = Jitter(u32::MAX);

#[test]
fn backoff_doubles_up_to_the_cap_and_ends() {
    let backoff = Backoff { cap: Millis(60_000), ..Backoff::default() };
    let waits: Vec<_> = (1..=5).map(|failures| backoff.wait(failures, WHOLE)).collect();
    let expected = [10_000, 20_000, 40_000, 60_000].map(|wait| Some(Millis(wait)));
    assert_eq!(waits, [&expected[..], &[None]].concat());
}

#[test]
fn jitter_subtracts_at_most_half_and_is_a_parameter() {
    let backoff = Backoff::default();
    assert_eq!(backoff.wait(1, Jitter(0)), Some(Millis(5_000)));
    assert_eq!(backoff.wait(1, Jitter(u32::MAX / 2)), Some(Millis(7_499)));
    assert_eq!(backoff.wait(2, Jitter(7)), backoff.wait(2, Jitter(7)));
}

#[test]
fn backoff_saturates_at_large_numbers() {
    let backoff = Backoff { first: Millis(u64::MAX), cap: Millis(u64::MAX), attempts: u32::MAX };
    assert_eq!(backoff.wait(u32::MAX - 1, WHOLE), Some(Millis(u64::MAX)));
    assert_eq!(backoff.wait(u32::MAX, WHOLE), None);
    assert_eq!(Backoff { attempts: 0, ..Backoff::default() }.wait(1, WHOLE), None);
}
