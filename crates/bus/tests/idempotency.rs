//! Published twice under one idempotency key, an event is there once.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use holdfast_bus::{Bus, EventId, NewEvent};
use holdfast_contract::ids::Millis;

fn once(text: &str, name: &str) -> NewEvent {
    event("user.message", text).idempotency(name)
}

async fn publish_once(bus: &Bus, text: &str, name: &str) -> (EventId, bool) {
    let published = bus.publish(once(text, name)).await.unwrap();
    (published.id, published.duplicate)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_answers_with_the_earlier_event_even_after_a_restart() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let subscriptions = || vec![ledger.subscription("one", &[">"])];
    let bus = lab.open(subscriptions()).await;
    let (first, duplicate) = publish_once(&bus, "hello", "m-1").await;
    assert!(!duplicate);
    assert_eq!(publish_once(&bus, "hello", "m-1").await, (first, true));
    let (other, duplicate) = publish_once(&bus, "hello", "m-2").await;
    assert!(other != first && !duplicate, "another key is another event");
    let elsewhere = bus.publish(event("other.topic", "hello").idempotency("m-1")).await.unwrap();
    assert!(!elsewhere.duplicate, "a key belongs to its topic");
    bus.close(Millis(1_000)).await;

    let lab = lab.restarted();
    let bus = lab.open(subscriptions()).await;
    assert_eq!(publish_once(&bus, "hello", "m-1").await, (first, true));
    settled(&bus).await;
    assert_eq!(ledger.taken().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_publish_at_once_under_one_key_publish_one_event() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let bus = lab.open(vec![ledger.subscription("one", &[">"])]).await;
    for round in 0..20 {
        let publishers: Vec<_> = (0..16)
            .map(|_| {
                let bus = bus.clone();
                tokio::spawn(async move { publish_once(&bus, "hello", &format!("m-{round}")).await })
            })
            .collect();
        let mut answers = Vec::new();
        for publisher in publishers {
            answers.push(publisher.await.unwrap());
        }
        assert_eq!(answers.iter().filter(|(_, duplicate)| !duplicate).count(), 1, "{answers:?}");
        assert!(answers.iter().all(|(id, _)| *id == answers[0].0), "{answers:?}");
    }
    settled(&bus).await;
    assert_eq!(ledger.taken().len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_twice_in_one_go_is_one_event() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let bus = lab.open(vec![ledger.subscription("one", &[">"])]).await;
    let all = bus.publish_many(vec![once("a", "x"), once("b", "y"), once("a", "x")]).await.unwrap();
    assert_eq!(all.iter().map(|one| one.duplicate).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(all[0].id, all[2].id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_that_gives_up_waiting_does_not_open_the_door_to_a_second_one() {
    let lab = Lab::new();
    let bus = lab.open(vec![]).await;
    for round in 0..50 {
        let name = format!("m-{round}");
        // Given up at another moment each time: before, while and after it is written.
        let hasty = tokio::time::timeout(
            std::time::Duration::from_micros(round * 40),
            publish_once(&bus, "x", &name),
        );
        drop(hasty.await);
        publish_once(&bus, "x", &name).await;
    }
    lab.store.flush().unwrap();
    let frames: u64 = lab.store.streams().unwrap().iter().map(|stream| stream.frames).sum();
    assert_eq!(frames, 50);
}
