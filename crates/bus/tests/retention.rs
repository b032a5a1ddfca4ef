//! What is kept for how long, and what never goes.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use holdfast_bus::{CollectedEvents, RetryBackoff, Subscription};
use holdfast_contract::ids::{Millis, Seq};
use holdfast_store::Retention;

#[tokio::test(flavor = "multi_thread")]
async fn names_dead_letters_and_leftovers_go_when_their_time_is_up() {
    let (mut lab, ledger) = (Lab::new(), Ledger::default());
    lab.settings.keep_names = Millis(1_000);
    lab.settings.keep_dead_letters = Millis(2_000);
    lab.settings.keep_leftovers = Millis(3_000);
    let fails = Subscription { max_attempts: 1, ..ledger.subscription("fails", &["t"]) };
    let bus = lab.open(vec![fails.clone(), ledger.subscription("leaves", &["u"])]).await;
    ledger.tell("fails", "bad", Act::Fail(9));
    ledger.tell("leaves", "left", Act::Fail(9));
    let dead = bus.publish(event("t", "bad").idempotency("once")).await.unwrap().id;
    let left = publish(&bus, "u", "k", "left").await.id;
    ledger.until(2).await;
    settled(&bus).await;
    bus.subscribe(vec![fails]).await.unwrap();

    assert_eq!(bus.tidy().await.unwrap(), CollectedEvents::default());
    lab.clock.advance(1_001);
    assert_eq!(bus.tidy().await.unwrap(), CollectedEvents { names: 1, ..CollectedEvents::default() });
    assert!(!bus.publish(event("t", "bad again").idempotency("once")).await.unwrap().duplicate);
    lab.clock.advance(1_000);
    assert_eq!(bus.tidy().await.unwrap(), CollectedEvents { dead_letters: 1, ..CollectedEvents::default() });
    lab.clock.advance(1_000);
    assert_eq!(
        bus.tidy().await.unwrap(),
        CollectedEvents { names: 1, leftovers: 1, ..CollectedEvents::default() }
    );
    settled(&bus).await;
    assert_eq!(lab.rows(), 0);
    let status = bus.status();
    assert_eq!((status.subscribers[0].dead, status.subscribers[1].open), (0, 0));
    let story = lab.story();
    for (name, id) in [("fails", dead), ("leaves", left)] {
        assert!(story.iter().any(|line| line.starts_with(&format!("discarded {name} {id}:"))), "{story:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_owed_or_dead_keeps_its_frame_and_all_after_it() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let backoff = RetryBackoff { first: Millis(0), most: Millis(0) };
    let terms = Subscription { max_attempts: 2, backoff, ..ledger.subscription("one", &["t"]) };
    let bus = lab.open(vec![terms]).await;
    ledger.tell("one", "bad", Act::Fail(9));
    let mut ids = Vec::new();
    for text in ["fine", "bad", "fine too"] {
        ids.push(publish(&bus, "t", "k", text).await.id);
    }
    ledger.until(4).await;
    settled(&bus).await;
    let stream = ids[0].stream();
    lab.store.flush().unwrap();
    let all = Retention { max_frames: Some(0), max_age: None };
    let last = || lab.store.collectable(&stream, all, EPOCH).unwrap().map(|head| head.seq);
    assert_eq!(last(), ids[1].seq().0.checked_sub(1).map(Seq), "up to the dead letter");
    bus.discard_dead_letter(ids[1], "one", "enough").await.unwrap();
    assert_eq!(last(), lab.store.head(&stream).unwrap().map(|head| head.seq));
}
