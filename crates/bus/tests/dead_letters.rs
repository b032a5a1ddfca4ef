//! Dead letters: who they belong to, how they are announced, tried again and thrown away.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::*;
use holdfast_bus::{Bus, DeadLetter, Delivery, DeliveryProgress, RetryBackoff, Subscription, topics};
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault};

fn twice(subscription: Subscription) -> Subscription {
    let backoff = RetryBackoff { first: Millis(0), most: Millis(0) };
    Subscription { max_attempts: 2, backoff, ..subscription }
}

async fn dead(bus: &Bus, subscriber: &str, count: u64) -> Vec<DeadLetter> {
    let found = || bus.status().subscribers.iter().find(|one| *one.name == *subscriber).map(|one| one.dead);
    eventually(|| found() == Some(count)).await;
    bus.dead_letters(Some(subscriber)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_failed_as_often_as_it_may_is_a_dead_letter_and_lets_the_next_one_go() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let bus = lab.open(vec![twice(ledger.subscription("one", &["t"]))]).await;
    ledger.tell("one", "bad", Act::Fail(9));
    let id = publish(&bus, "t", "k", "bad").await.id;
    publish(&bus, "t", "k", "good").await;
    ledger.until(3).await;
    settled(&bus).await;
    assert_eq!(ledger.texts("one"), ["bad", "bad", "good"]);
    let letters = dead(&bus, "one", 1).await;
    let DeadLetter { id: dead, attempts, published, died, fault, event, .. } = letters[0].clone();
    assert_eq!((dead, attempts, published, died), (id, 2, EPOCH, EPOCH));
    assert_eq!(fault.unwrap().code, Code::ExtensionFault);
    assert_eq!(event.unwrap().payload.to_text(), "bad");
    assert_eq!(bus.dead_letter(id, "one").await.unwrap(), letters[0]);
    assert!(lab.story().contains(&format!("dead one {id} attempts 2")), "{:?}", lab.story());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_announced_once_and_its_announcement_never() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let watcher = twice(ledger.subscription("watcher", &["system.>"]));
    let bus = lab.open(vec![twice(ledger.subscription("one", &["t"])), watcher]).await;
    ledger.tell("one", "bad", Act::Fail(9));
    let new = event("t", "bad").key("k").correlation("case-7");
    let id = bus.publish(new).await.unwrap().id;
    ledger.until(3).await;
    settled(&bus).await;
    let notice = ledger.texts("watcher").remove(0);
    let said: serde_json::Value = serde_json::from_str(&notice).unwrap();
    assert_eq!((said["event"].as_str(), said["topic"].as_str()), (Some(id.to_string().as_str()), Some("t")));
    assert_eq!((said["subscriber"].as_str(), said["attempts"].as_u64()), (Some("one"), Some(2)));
    assert_eq!(said["fault"]["code"], Code::ExtensionFault.as_str());

    ledger.tell("watcher", "again", Act::Fail(9));
    publish(&bus, topics::DEAD_LETTER, "k", "again").await;
    let letters = dead(&bus, "watcher", 1).await;
    settled(&bus).await;
    assert_eq!(letters[0].event.as_ref().unwrap().payload.to_text(), "again");
    assert_eq!(ledger.texts("watcher").len(), 3, "of that, no notice was given");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_that_is_tried_again_has_all_its_attempts_and_is_a_repeat() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let bus = lab.open(vec![twice(ledger.subscription("one", &["t"]))]).await;
    ledger.tell("one", "bad", Act::Fail(9));
    let id = publish(&bus, "t", "k", "bad").await.id;
    dead(&bus, "one", 1).await;

    bus.retry_dead_letter(id, "one").await.unwrap();
    ledger.until(4).await;
    dead(&bus, "one", 1).await;
    let marks: Vec<_> = ledger.taken().iter().map(|taken| (taken.attempt, taken.repeat)).collect();
    assert_eq!(marks, [(1, false), (2, true), (1, true), (2, true)]);

    ledger.forget("one", "bad");
    bus.retry_dead_letter(id, "one").await.unwrap();
    ledger.until(5).await;
    settled(&bus).await;
    assert_eq!((lab.rows(), bus.dead_letters(None).await.unwrap()), (0, vec![]));
    let again = bus.retry_dead_letter(id, "one").await.unwrap_err();
    assert_eq!(again.code, Code::DeadLetterMissing, "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_discarded_dead_letter_is_gone_with_its_reason_on_record() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let both = ["one", "two"].map(|name| twice(ledger.subscription(name, &["t"])));
    let bus = lab.open(both.to_vec()).await;
    for name in ["one", "two"] {
        ledger.tell(name, "bad", Act::Fail(9));
    }
    let id = publish(&bus, "t", "k", "bad").await.id;
    dead(&bus, "one", 1).await;
    dead(&bus, "two", 1).await;
    bus.discard_dead_letter(id, "one", "it was a joke").await.unwrap();
    let left = bus.dead_letters(None).await.unwrap();
    assert_eq!(left.iter().map(|letter| letter.subscriber.as_str()).collect::<Vec<_>>(), ["two"]);
    assert!(lab.story().contains(&format!("discarded one {id}: it was a joke")), "{:?}", lab.story());
    for (name, expected) in [("one", Code::DeadLetterMissing), ("nobody", Code::DeadLetterMissing)] {
        assert_eq!(bus.discard_dead_letter(id, name, "twice").await.unwrap_err().code, expected);
    }
    assert_eq!(bus.status().subscribers[0].dead, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_there_after_a_restart() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let subscriptions = || vec![twice(ledger.subscription("one", &["t"]))];
    let bus = lab.open(subscriptions()).await;
    ledger.tell("one", "bad", Act::Fail(9));
    let id = publish(&bus, "t", "k", "bad").await.id;
    let before = dead(&bus, "one", 1).await;
    bus.close(Millis(0)).await;
    let lab = lab.restarted();
    let bus = lab.open(subscriptions()).await;
    assert_eq!(bus.dead_letters(None).await.unwrap(), before);
    ledger.forget("one", "bad");
    bus.retry_dead_letter(id, "one").await.unwrap();
    ledger.until(3).await;
    settled(&bus).await;
    assert_eq!(lab.rows(), 0);
}

// Finding D10.
#[tokio::test(flavor = "multi_thread")]
async fn the_events_of_a_subscriber_that_is_down_wait_without_attempts() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let down = ledger.subscription("down", &["t"]);
    let paused = down.paused.clone();
    paused.store(true, Ordering::Release);
    let bus = lab.open(vec![down, ledger.barrier_subscription()]).await;
    for number in 0..5 {
        publish(&bus, "t", "k", &format!("e{number}")).await;
    }
    ledger.barrier(&bus).await;
    let status = |bus: &Bus| bus.status().subscribers.into_iter().find(|one| &*one.name == "down").unwrap();
    assert_eq!((status(&bus).open, status(&bus).under_way, status(&bus).paused), (5, 0, true));
    paused.store(false, Ordering::Release);
    bus.wake();
    settled(&bus).await;
    assert_eq!(ledger.texts("down"), ["e0", "e1", "e2", "e3", "e4"]);
    let attempts: Vec<u32> = ledger.taken().iter().map(|taken| taken.attempt).collect();
    assert!(attempts.iter().all(|attempt| *attempt == 1), "{attempts:?}");
}

// Finding D10.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_finds_its_subscriber_down_does_not_count() {
    let lab = Lab::new();
    let (calls, last) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let handler = {
        let (calls, last) = (calls.clone(), last.clone());
        move |delivery: Delivery| {
            let down = calls.fetch_add(1, Ordering::SeqCst) < 20;
            last.store(delivery.attempt, Ordering::SeqCst);
            std::future::ready(if down { Err(Fault::new(Code::SubscriberDown, "not up")) } else { Ok(()) })
        }
    };
    let bus = lab.open(vec![twice(Subscription::new("down", &["t"], handler).unwrap())]).await;
    publish(&bus, "t", "k", "e").await;
    eventually(|| calls.load(Ordering::SeqCst) == 21).await;
    settled(&bus).await;
    assert_eq!((last.load(Ordering::SeqCst), bus.dead_letters(None).await.unwrap().len()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_of_a_topic_has_the_outcome_for_each_subscriber() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let three = ["fails", "fails_too", "works"].map(|name| twice(ledger.subscription(name, &["t"])));
    let bus = lab.open(three.to_vec()).await;
    for name in ["fails", "fails_too"] {
        ledger.tell(name, "bad", Act::Fail(9));
    }
    let id = publish(&bus, "t", "k", "bad").await.id;
    publish(&bus, "t", "other", "good").await;
    dead(&bus, "fails", 1).await;
    dead(&bus, "fails_too", 1).await;
    settled(&bus).await;
    bus.discard_dead_letter(id, "fails_too", "it was a joke").await.unwrap();

    let topics = bus.topics().await.unwrap();
    let topic = topics.iter().find(|it| it.topic.as_str() == "t").unwrap();
    assert_eq!((topic.events, topic.open, topic.dead), (2, 0, 1));
    assert_eq!(topic.subscribers, ["fails", "fails_too", "works"]);
    let events = bus.recent(&"t".into(), 10).await.unwrap();
    let bad = events.iter().find(|it| it.event.id == id).unwrap();
    let states: Vec<_> = bad.deliveries.iter().map(|(name, state)| (name.as_str(), *state)).collect();
    let expected = [
        ("fails", DeliveryProgress::Dead),
        ("fails_too", DeliveryProgress::Discarded),
        ("works", DeliveryProgress::Delivered),
    ];
    assert_eq!((states.as_slice(), bad.event.payload.to_text()), (&expected[..], "bad".to_owned()));
    assert_eq!(bus.recent(&"t".into(), 1).await.unwrap().len(), 1);
    let unknown = bus.recent(&"s".into(), 10).await.unwrap_err();
    assert_eq!(unknown.code, Code::TopicUnknown);
}
