//! Dead letters: who they belong to, how they are announced, tried again and thrown away.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use holdfast_bus::{Bus, DeadLetter, RetryBackoff, Subscription, topics};
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::Code;

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
