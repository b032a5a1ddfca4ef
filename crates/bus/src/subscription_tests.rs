//! Pauses, and lists that are refused.

use super::*;

fn subscription(name: &str) -> Subscription {
    Subscription::new(name, &["a.*"], |_| async { Ok(()) }).unwrap()
}

#[test]
fn a_pause_doubles_up_to_its_limit_and_loses_half_of_it_to_chance() {
    let backoff = RetryBackoff { first: Millis(100), most: Millis(1_000) };
    let shortest: Vec<u64> = (1..=6).map(|attempts| backoff.pause(attempts, 0).0).collect();
    assert_eq!(shortest, [50, 100, 200, 400, 500, 500]);
    for attempts in [1, 2, 3, 4, 5, 64, 65, u32::MAX] {
        let whole = backoff.pause(attempts, 0).0 * 2;
        for chance in (0..5_000).chain([u64::MAX]) {
            let pause = backoff.pause(attempts, chance).0;
            assert!(whole / 2 <= pause && pause <= whole, "{pause} of {whole}");
        }
    }
    assert_eq!(RetryBackoff { first: Millis(0), most: Millis(0) }.pause(3, 7), Millis(0));
}

#[test]
fn a_list_that_cannot_be_carried_out_is_refused() {
    check(&[subscription("one"), subscription("two")]).unwrap();
    let lists = [
        vec![subscription("one"), subscription("one")],
        vec![subscription("")],
        vec![Subscription { patterns: vec![], ..subscription("one") }],
        vec![Subscription { max_attempts: 0, ..subscription("one") }],
        vec![Subscription { concurrency: 0, ..subscription("one") }],
        vec![Subscription { backlog: 0, ..subscription("one") }],
        vec![Subscription { deadline: Millis(0), ..subscription("one") }],
    ];
    for list in lists {
        assert_eq!(check(&list).unwrap_err().code, Code::SubscriptionInvalid, "{list:?}");
    }
}
