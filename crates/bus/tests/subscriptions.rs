//! Subscriptions that change while the bus runs.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::Code;

#[tokio::test(flavor = "multi_thread")]
async fn a_new_subscriber_gets_what_is_published_from_then_on() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let bus = lab.open(vec![ledger.subscription("old", &[">"])]).await;
    publish(&bus, "t", "k", "before").await;
    bus.subscribe(vec![ledger.subscription("old", &[">"]), ledger.subscription("new", &["t"])])
        .await
        .unwrap();
    publish(&bus, "t", "k", "after").await;
    ledger.until(3).await;
    settled(&bus).await;
    assert_eq!(
        (ledger.texts("old"), ledger.texts("new")),
        (vec!["before".into(), "after".into()], vec!["after".to_owned()])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_removed_subscriber_had_not_finished_is_kept_and_reported_until_it_is_back() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let bus = lab.open(vec![ledger.subscription("gone", &["t"])]).await;
    ledger.tell("gone", "e1", Act::Fail(1));
    for text in ["e1", "e2"] {
        publish(&bus, "t", "k", text).await;
    }
    ledger.until(1).await;
    settled(&bus).await;
    bus.subscribe(vec![]).await.unwrap();
    publish(&bus, "t", "k", "meanwhile").await;
    lab.clock.advance(5_000);
    let status = bus.status().subscribers.remove(0);
    assert_eq!((status.active, status.open, status.oldest), (false, 2, Some(EPOCH)));
    bus.close(Millis(0)).await;

    let lab = lab.restarted();
    let bus = lab.open(vec![]).await;
    assert_eq!(bus.status().subscribers[0].open, 2, "it is kept over a restart too");
    bus.subscribe(vec![ledger.subscription("gone", &["t"])]).await.unwrap();
    ledger.until(3).await;
    settled(&bus).await;
    assert_eq!(ledger.texts("gone"), ["e1", "e1", "e2"]);
    assert_eq!(lab.rows(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_at_work_ends_although_its_subscriber_was_removed() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let bus = lab.open(vec![ledger.subscription("one", &["t"])]).await;
    ledger.tell("one", "x", Act::Wait);
    publish(&bus, "t", "k", "x").await;
    publish(&bus, "t", "k", "y").await;
    ledger.until(1).await;
    bus.subscribe(vec![]).await.unwrap();
    ledger.let_go();
    eventually(|| bus.status().subscribers[0].open == 1).await;
    assert_eq!(ledger.texts("one"), ["x"]);
    eventually(|| lab.rows() == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terms_can_change_while_events_wait() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let bus = lab.open(vec![ledger.subscription("one", &["t"])]).await;
    ledger.tell("one", "x", Act::Fail(9));
    publish(&bus, "t", "k", "x").await;
    ledger.until(1).await;
    settled(&bus).await;
    let mut stricter = ledger.subscription("one", &["other"]);
    stricter.max_attempts = 2;
    bus.subscribe(vec![stricter]).await.unwrap();
    lab.clock.advance(1_000);
    ledger.until(2).await;
    eventually(|| bus.status().subscribers[0].dead == 1).await;
    publish(&bus, "t", "k", "not wanted any more").await;
    settled(&bus).await;
    assert_eq!(ledger.taken().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_cannot_be_changes_nothing() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let bus = lab.open(vec![ledger.subscription("one", &["t"])]).await;
    let twice = vec![ledger.subscription("two", &["t"]), ledger.subscription("two", &["u"])];
    assert_eq!(bus.subscribe(twice).await.unwrap_err().code, Code::SubscriptionInvalid);
    publish(&bus, "t", "k", "x").await;
    ledger.until(1).await;
    assert_eq!(bus.status().subscribers.len(), 1);
}
