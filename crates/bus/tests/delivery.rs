//! Who gets what, in which order, and what happens when a handler fails, hangs or breaks down.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use holdfast_bus::{RetryBackoff, Subscription};
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::Code;

/// A pause that chance has no say in.
fn at_once(subscription: Subscription) -> Subscription {
    Subscription { backoff: RetryBackoff { first: Millis(0), most: Millis(0) }, ..subscription }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_reaches_everyone_who_wants_its_topic_and_nobody_else() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let wants = [("exact", "reminder.due"), ("one-word", "reminder.*"), ("rest", "system.>"), ("all", ">")];
    let bus = lab.open(wants.map(|(name, pattern)| ledger.subscription(name, &[pattern])).to_vec()).await;
    for topic in ["reminder.due", "reminder.set", "system.user.notify", "other"] {
        publish(&bus, topic, "k", topic).await;
    }
    ledger.until(8).await;
    settled(&bus).await;
    assert_eq!(ledger.texts("exact"), ["reminder.due"]);
    let mut one_word = ledger.texts("one-word");
    one_word.sort();
    assert_eq!(one_word, ["reminder.due", "reminder.set"]);
    assert_eq!(ledger.texts("rest"), ["system.user.notify"]);
    assert_eq!(ledger.texts("all").len(), 4);
    assert!(ledger.taken().iter().all(|taken| taken.attempt == 1 && !taken.repeat));
    assert_eq!(lab.rows(), 0);
    assert_eq!(lab.store.verify(None).unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_nobody_wants_is_a_frame_all_the_same() {
    let lab = Lab::new();
    let bus = lab.open(vec![]).await;
    let published = publish(&bus, "lonely.topic", "k", "hello").await;
    let frames = lab.store.frames(&published.id.stream(), ..).unwrap();
    assert_eq!((frames.len(), frames[0].envelope.seq), (1, published.id.seq()));
    assert_eq!(lab.rows(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_carries_what_was_published_with_it() {
    let lab = Lab::new();
    let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |delivery: holdfast_bus::Delivery| {
        let sent = sender.send(delivery);
        async move { sent.map_err(|_| unreachable!()) }
    };
    let bus = lab.open(vec![Subscription::new("one", &[">"], handler).unwrap()]).await;
    let large = "x".repeat(10_000);
    let new = event("a.b", &large).key("k").correlation("c-1").idempotency("once");
    let published = bus.publish(new).await.unwrap();
    let event = received.recv().await.unwrap().event;
    assert_eq!((event.id, event.topic.as_str(), event.at), (published.id, "a.b", EPOCH));
    assert_eq!((event.key.as_deref(), event.correlation.as_deref()), (Some("k"), Some("c-1")));
    assert_eq!(event.payload.to_text(), large);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_event_holds_up_its_own_key_and_no_other() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let bus = lab.open(vec![ledger.subscription("one", &["t"])]).await;
    ledger.tell("one", "a1", Act::Fail(2));
    for text in ["a1", "a2", "a3", "b1", "b2"] {
        publish(&bus, "t", &text[..1], text).await;
    }
    ledger.until(3).await;
    settled(&bus).await;
    let of = |key: &str| -> Vec<String> {
        ledger.texts("one").into_iter().filter(|text| text.starts_with(key)).collect()
    };
    assert_eq!((of("a"), of("b")), (vec!["a1".to_owned()], vec!["b1".to_owned(), "b2".to_owned()]));
    assert_eq!(bus.status().subscribers[0].delayed, 3);

    lab.clock.advance(1_000);
    ledger.until(4).await;
    settled(&bus).await;
    lab.clock.advance(2_000);
    ledger.until(7).await;
    settled(&bus).await;
    assert_eq!(of("a"), ["a1", "a1", "a1", "a2", "a3"]);
    let marks: Vec<_> = ledger.taken().into_iter().filter(|taken| taken.text == "a1").collect();
    assert_eq!(
        marks.iter().map(|taken| (taken.attempt, taken.repeat)).collect::<Vec<_>>(),
        [(1, false), (2, true), (3, true)]
    );
    assert_eq!(lab.rows(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_without_a_key_keep_their_topic_s_order() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let bus = lab.open(vec![at_once(ledger.subscription("one", &["t"]))]).await;
    ledger.tell("one", "e3", Act::Fail(3));
    let texts: Vec<String> = (0..20).map(|number| format!("e{number}")).collect();
    bus.publish_many(texts.iter().map(|text| event("t", text)).collect()).await.unwrap();
    ledger.until(23).await;
    settled(&bus).await;
    let mut seen = ledger.texts("one");
    seen.dedup();
    assert_eq!(seen, texts);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_handler_that_failed_is_tried_again() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let names = ["well", "fails", "panics"];
    let bus = lab.open(names.map(|name| at_once(ledger.subscription(name, &["t"]))).to_vec()).await;
    ledger.tell("fails", "x", Act::Fail(2));
    ledger.tell("panics", "x", Act::Panic);
    publish(&bus, "t", "k", "x").await;
    ledger.until(1 + 3 + 5).await;
    settled(&bus).await;
    let count = |name: &str| ledger.texts(name).len();
    assert_eq!((count("well"), count("fails"), count("panics")), (1, 3, 5));
    let dead = bus.dead_letters(None).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!((dead[0].subscriber.as_str(), dead[0].attempts), ("panics", 5));
    let fault = dead[0].fault.clone().unwrap();
    assert_eq!((fault.code, fault.message.as_str()), (Code::HandlerBroke, "panicked: told to"));
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_backoff_grows_and_is_recorded_with_its_jitter() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let backoff = RetryBackoff { first: Millis(1_000), most: Millis(3_000) };
    let one = Subscription { backoff, ..ledger.subscription("one", &["t"]) };
    let bus = lab.open(vec![one, ledger.barrier_subscription()]).await;
    ledger.tell("one", "x", Act::Fail(9));
    let id = publish(&bus, "t", "k", "x").await.id;
    let mut pauses = Vec::new();
    for attempt in 1..5_u32 {
        eventually(|| ledger.texts("one").len() >= attempt as usize).await;
        settled(&bus).await;
        let story = lab.story();
        let retried: Vec<_> = story.iter().filter(|line| line.starts_with("retried")).collect();
        let last = retried.last().unwrap();
        assert!(last.starts_with(&format!("retried one {id} attempt {attempt} after ")), "{last}");
        let next: u64 = last.split_whitespace().nth(6).unwrap().trim_end_matches(':').parse().unwrap();
        let now = holdfast_bus::Clock::now(&lab.clock).since(EPOCH).0;
        pauses.push(next - now);
        lab.clock.advance(next - now - 1);
        ledger.barrier(&bus).await;
        assert_eq!(ledger.texts("one").len(), attempt as usize, "not before its time");
        lab.clock.advance(1);
    }
    for (pause, whole) in pauses.iter().zip([1_000, 2_000, 3_000, 3_000]) {
        assert!(whole / 2 <= *pause && *pause <= whole, "{pauses:?}");
    }
    eventually(|| bus.status().subscribers[0].dead == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_hangs_is_stopped_at_its_deadline_and_retried_as_a_repeat() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let terms = Subscription { deadline: Millis(500), ..at_once(ledger.subscription("one", &["t"])) };
    let bus = lab.open(vec![terms, ledger.barrier_subscription()]).await;
    ledger.tell("one", "x", Act::Hang);
    let id = publish(&bus, "t", "k", "x").await.id;
    publish(&bus, "t", "k", "y").await;
    ledger.until(1).await;
    lab.clock.advance(499);
    ledger.barrier(&bus).await;
    assert_eq!(ledger.texts("one"), ["x"]);
    ledger.forget("one", "x");
    lab.clock.advance(1);
    ledger.until(4).await;
    settled(&bus).await;
    assert_eq!(ledger.texts("one"), ["x", "x", "y"]);
    let again = ledger.taken().into_iter().filter(|taken| taken.text == "x").nth(1).unwrap();
    assert_eq!((again.attempt, again.repeat), (2, true));
    let late = format!("retried one {id} attempt 1 after 500: {}", Code::HandlerLate);
    assert!(lab.story().contains(&late), "{:?}", lab.story());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_than_its_concurrency_are_with_a_subscriber_at_once() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let one = Subscription { concurrency: 3, ..ledger.subscription("one", &["t"]) };
    let bus = lab.open(vec![one, ledger.barrier_subscription()]).await;
    for number in 0..10 {
        let text = format!("e{number}");
        ledger.tell("one", &text, Act::Wait);
        publish(&bus, "t", &text, &text).await;
    }
    for round in [3, 6, 9, 10] {
        eventually(|| ledger.texts("one").len() >= round).await;
        ledger.barrier(&bus).await;
        assert_eq!(ledger.texts("one").len(), round);
        assert_eq!(bus.status().subscribers[0].under_way, if round == 10 { 1 } else { 3 });
        ledger.let_go();
    }
    settled(&bus).await;
    assert_eq!(lab.rows(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_beyond_those_kept_in_memory_are_read_back() {
    let (mut lab, ledger) = (Lab::new(), Ledger::default());
    lab.settings.resident = 2;
    let bus = lab.open(vec![Subscription { concurrency: 1, ..ledger.subscription("one", &["t"]) }]).await;
    ledger.tell("one", "e0", Act::Wait);
    let texts: Vec<String> = (0..50).map(|number| format!("e{number}")).collect();
    for text in &texts {
        publish(&bus, "t", "k", text).await;
    }
    ledger.until(1).await;
    ledger.let_go();
    ledger.until(50).await;
    settled(&bus).await;
    assert_eq!(ledger.texts("one"), texts);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_cannot_be_is_refused() {
    let lab = Lab::new();
    let bus = lab.open(vec![]).await;
    for topic in ["", "a..b", "a.*", "a b"] {
        let problem = bus.publish(event(topic, "x")).await.unwrap_err();
        assert_eq!(problem.code, Code::TopicInvalid, "{problem}");
    }
    assert_eq!(lab.store.streams().unwrap(), []);
}
