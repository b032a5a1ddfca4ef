//! What the next process finds: what was under way is delivered again as a repeat, and the attempt counts.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use holdfast_bus::{Bus, Subscription};
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::Code;

/// Ends everything where it stands, as if the process had been killed.
async fn kill(bus: Bus, lab: Lab, ledger: &Ledger) -> Lab {
    drop(bus);
    // The handlers' tasks hold the log for a moment longer.
    ledger.released().await;
    lab.restarted()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_under_way_is_delivered_again_as_a_repeat_and_what_was_not_is_no_repeat() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let subscriptions = || vec![ledger.subscription("one", &["t"])];
    let bus = lab.open(subscriptions()).await;
    ledger.tell("one", "a1", Act::Hang);
    let id = publish(&bus, "t", "a", "a1").await.id;
    publish(&bus, "t", "a", "a2").await;
    publish(&bus, "t", "b", "b1").await;
    ledger.until(2).await;
    settled_but(&bus, 2).await;
    let lab = kill(bus, lab, &ledger).await;
    ledger.forget("one", "a1");

    let bus = lab.open(subscriptions()).await;
    ledger.until(4).await;
    settled(&bus).await;
    let taken: Vec<_> = ledger.taken()[2..].iter().map(|t| (t.text.clone(), t.attempt, t.repeat)).collect();
    assert_eq!(taken, [("a1".to_owned(), 2, true), ("a2".to_owned(), 1, false)]);
    let interrupted = format!("retried one {id} attempt 1 after 0: {}", Code::HandlerInterrupted);
    assert!(lab.story().contains(&interrupted), "{:?}", lab.story());
    assert_eq!((lab.rows(), lab.store.verify(None).unwrap()), (0, vec![]));
}

async fn settled_but(bus: &Bus, open: usize) {
    eventually(|| bus.status().subscribers[0].open == open).await;
}

/// Lets time pass until this text is with its handler once more, or is a dead letter.
async fn until_at_hand(bus: &Bus, lab: &Lab, ledger: &Ledger, text: &str, times: usize) {
    eventually(|| {
        lab.clock.advance(1_000);
        let at_hand = ledger.taken().iter().filter(|taken| taken.text == text).count() == times;
        at_hand || bus.status().subscribers.iter().any(|subscriber| subscriber.dead > 0)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_crashes_every_process_becomes_a_dead_letter() {
    let (mut lab, ledger) = (Lab::new(), Ledger::default());
    let patient = |name| Subscription { deadline: Millis(u64::MAX / 2), ..ledger.subscription(name, &["t"]) };
    let subscriptions = || vec![patient("one"), patient("two")];
    for text in ["killer", "slow", "slower"] {
        ledger.tell("one", text, Act::Hang);
    }
    ledger.tell("two", "slow", Act::Hang);
    let mut bus = lab.open(subscriptions()).await;
    for text in ["killer", "slow", "slower"] {
        publish(&bus, "t", text, text).await;
    }
    // The process is killed whenever the killer is at work. The slow ones are at work too, the first two times.
    for life in 1..=5 {
        until_at_hand(&bus, &lab, &ledger, "killer", 1 + life).await;
        if life == 2 {
            for (name, text) in [("one", "slow"), ("one", "slower"), ("two", "slow")] {
                ledger.forget(name, text);
            }
        }
        lab = kill(bus, lab, &ledger).await;
        bus = lab.open(subscriptions()).await;
    }
    until_at_hand(&bus, &lab, &ledger, "killer", usize::MAX).await;
    settled(&bus).await;
    let letters = bus.dead_letters(None).await.unwrap();
    assert_eq!(letters.len(), 1, "{letters:?}");
    assert_eq!(letters[0].event.as_ref().unwrap().payload.to_text(), "killer");
    assert_eq!((letters[0].subscriber.as_str(), letters[0].attempts), ("one", 5));
    assert_eq!(letters[0].fault.as_ref().unwrap().code, Code::HandlerInterrupted);
    assert_eq!(lab.rows(), 1, "all others are delivered");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_two_ended_processes_waits_for_the_other_one() {
    let (mut lab, ledger) = (Lab::new(), Ledger::default());
    let one = || Subscription { deadline: Millis(u64::MAX / 2), ..ledger.subscription("one", &["t"]) };
    let subscriptions = || vec![one(), ledger.barrier_subscription()];
    for text in ["a", "b"] {
        ledger.tell("one", text, Act::Hang);
    }
    let mut bus = lab.open(subscriptions()).await;
    publish(&bus, "t", "a", "a").await;
    publish(&bus, "t", "b", "b").await;
    for life in 1..=2 {
        ledger.until(2 * life).await;
        lab = kill(bus, lab, &ledger).await;
        bus = lab.open(subscriptions()).await;
    }
    // The second pause is by the rules.
    eventually(|| {
        lab.clock.advance(1_000);
        ledger.taken().len() > 4
    })
    .await;
    lab.clock.advance(10_000);
    ledger.barrier(&bus).await;
    assert_eq!(ledger.texts("one").len(), 5, "one of them at a time");
}

const A_DAY_AND_AN_HOUR: i64 = 25 * 3_600_000;

// Finding D12: a clock that was put back by 25 hours stopped retries for 25 hours.
#[tokio::test(flavor = "multi_thread")]
async fn retries_and_deadlines_are_times_that_pass_however_the_clock_is_set() {
    for by in [A_DAY_AND_AN_HOUR, -A_DAY_AND_AN_HOUR] {
        let (lab, ledger) = (Lab::new(), Ledger::default());
        ledger.tell("one", "a1", Act::Fail(2));
        ledger.tell("two", "a1", Act::Wait);
        let bus =
            lab.open(vec![ledger.subscription("one", &["t"]), ledger.subscription("two", &["t"])]).await;
        publish(&bus, "t", "a", "a1").await;
        publish(&bus, "t", "a", "a2").await;
        eventually(|| bus.status().subscribers[0].delayed == 2).await;
        lab.clock.set(by);
        // The pauses are at most one and two seconds; the deadline of the other one is a minute.
        for _ in 0..4 {
            lab.clock.advance(1_000);
            tokio::task::yield_now().await;
        }
        eventually(|| {
            lab.clock.advance(100);
            ledger.texts("one").len() == 4
        })
        .await;
        assert_eq!(bus.status().subscribers[1].under_way, 1, "its deadline has not passed");
        ledger.let_go();
        settled(&bus).await;
        assert_eq!((lab.rows(), lab.store.verify(None).unwrap()), (0, vec![]));
    }
}

// Finding D12: the clock was put back before the process was started again.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_of_a_process_before_the_clock_was_put_back_is_not_later_than_the_longest_pause() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    ledger.tell("one", "a1", Act::Fail(1));
    let subscriptions = || vec![ledger.subscription("one", &["t"])];
    let bus = lab.open(subscriptions()).await;
    publish(&bus, "t", "a", "a1").await;
    eventually(|| bus.status().subscribers[0].delayed == 1).await;
    let lab = kill(bus, lab, &ledger).await;
    lab.clock.set(-A_DAY_AND_AN_HOUR);
    let bus = lab.open(subscriptions()).await;
    let mut passed = 0;
    eventually(|| {
        lab.clock.advance(10_000);
        passed += 10_000;
        ledger.texts("one").len() == 2
    })
    .await;
    assert!(passed < A_DAY_AND_AN_HOUR / 2, "it waited for {passed} ms");
    settled(&bus).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_lets_handlers_end_and_stops_the_rest_without_blame() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let subscriptions = || vec![ledger.subscription("one", &["t"])];
    let bus = lab.open(subscriptions()).await;
    ledger.tell("one", "quick", Act::Wait);
    ledger.tell("one", "slow", Act::Hang);
    publish(&bus, "t", "a", "quick").await;
    let id = publish(&bus, "t", "b", "slow").await.id;
    ledger.until(2).await;
    let other = bus.clone();
    let mut closing = Box::pin(bus.close(Millis(500)));
    tokio::select! {
        biased;
        () = &mut closing => unreachable!("handlers are under way"),
        () = std::future::ready(()) => {} // from now on it is closing
    }
    let closing = tokio::spawn(closing);
    assert_eq!(other.status().subscribers[0].under_way, 2);
    ledger.let_go();
    eventually(|| other.status().subscribers[0].under_way == 1).await;
    let refused = other.publish(event("t", "late")).await.unwrap_err();
    assert_eq!(refused.code, Code::BusClosed);
    lab.clock.advance(500);
    closing.await.unwrap();
    assert_eq!(lab.rows(), 1);
    assert_eq!(other.subscribe(subscriptions()).await.unwrap_err().code, Code::BusClosed);
    drop(other);

    let lab = lab.restarted();
    ledger.forget("one", "slow");
    let bus = lab.open(subscriptions()).await;
    ledger.until(3).await;
    settled(&bus).await;
    let again = ledger.taken().pop().unwrap();
    assert_eq!((again.text.as_str(), again.attempt, again.repeat), ("slow", 1, true));
    assert!(lab.story().iter().any(|line| line.starts_with(&format!("retried one {id} attempt 1"))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_outlasts_a_restart() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let subscriptions = || vec![ledger.subscription("one", &["t"])];
    let bus = lab.open(subscriptions()).await;
    ledger.tell("one", "x", Act::Fail(1));
    publish(&bus, "t", "k", "x").await;
    ledger.until(1).await;
    settled(&bus).await;
    bus.close(Millis(0)).await;
    let lab = lab.restarted();
    let bus = lab.open(subscriptions()).await;
    settled(&bus).await;
    assert_eq!(ledger.taken().len(), 1, "not before its time");
    lab.clock.advance(1_000);
    ledger.until(2).await;
    settled(&bus).await;
    assert_eq!((ledger.taken()[1].attempt, lab.rows()), (2, 0));
}
