//! A subscriber that is too far behind holds publishers back, with an answer that says who, how far and what to do.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use holdfast_bus::{Overflow, Subscription, topics};
use holdfast_contract::problem::Code;

#[tokio::test(flavor = "multi_thread")]
async fn backpressure_refuses_events_until_a_slow_subscriber_has_caught_up() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let slow = Subscription { backlog: 5, concurrency: 1, ..ledger.subscription("slow/handler", &["t.>"]) };
    let bus = lab.open(vec![slow, ledger.subscription("quick", &[">"])]).await;
    ledger.tell("slow/handler", "e0", Act::Wait);
    for number in 0..5 {
        publish(&bus, "t.a", "k", &format!("e{number}")).await;
    }
    let refused = bus.publish(event("t.b", "one too many")).await.unwrap_err();
    assert_eq!(refused.code, Code::SubscriberBehind);
    assert!(
        refused.what.contains("`slow/handler` has 5 events waiting and takes no more than 5"),
        "{refused}"
    );
    assert!(!refused.help.is_empty());
    bus.publish(event("other", "not its business")).await.unwrap();
    let together = bus.publish_many(vec![event("other", "x"), event("t.c", "y")]).await.unwrap_err();
    assert_eq!(together.code, Code::SubscriberBehind, "all or nothing");

    // Six with the quick one, and the first with the slow one.
    ledger.until(7).await;
    ledger.let_go();
    settled(&bus).await;
    let none = bus.publish_many((0..6).map(|number| event("t.a", &format!("f{number}"))).collect()).await;
    assert_eq!(none.unwrap_err().code, Code::SubscriberBehind, "six at once are more than five");
    bus.publish_many((0..5).map(|number| event("t.a", &format!("f{number}"))).collect()).await.unwrap();
    settled(&bus).await;
    let seen = ledger.texts("quick");
    assert!(!seen.iter().any(|text| ["one too many", "x", "y"].contains(&text.as_str())), "{seen:?}");
}

// Finding D7.
#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_subscriber_with_a_full_backlog_stops_nobody_else() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let stuck = ledger.subscription("stuck/>", &[">"]);
    let stuck = Subscription { backlog: 5, overflow: Overflow::DeadLetter, ..stuck };
    let messages = ledger.subscription("messages", &["user.message"]);
    let watcher = ledger.subscription("watcher", &[topics::DEAD_LETTER]);
    let bus = lab.open(vec![stuck, messages, watcher]).await;
    for number in 0..40 {
        ledger.tell("stuck/>", &format!("m{number}"), Act::Hang);
        bus.publish(event("user.message", &format!("m{number}")).key("ada")).await.unwrap();
    }
    eventually(|| ledger.texts("messages").len() == 40).await;
    // What it did not take is there, and was announced once.
    let letters = bus.dead_letters(Some("stuck/>")).await.unwrap();
    assert!(letters.len() >= 35, "{}", letters.len());
    assert_eq!((letters[0].attempts, letters[0].fault.as_ref().unwrap().code), (0, Code::SubscriberBehind));
    eventually(|| !ledger.texts("watcher").is_empty()).await;
    let said = ledger.texts("watcher");
    assert!(said.len() == 1 && said[0].contains("HF-8002"), "{said:?}");
    bus.retry_dead_letter(letters[0].id, "stuck/>").await.unwrap();
}
