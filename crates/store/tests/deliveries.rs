//! Frames and delivery rows are written together or not at all, and a frame that is owed to someone stays.

#![allow(clippy::unwrap_used)]

mod common;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use common::*;
use holdfast_contract::digest::Digest;
use holdfast_contract::ids::{Millis, Seq};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_store::{
    Change, CommitPriority, DeliveryRow, DeliveryState, Prepared, Receipt, Retention, Store, StreamPart,
    SubscriberKey,
};

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn wait(receipt: Receipt) -> Result<(), Problem> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut receipt = pin!(receipt);
    loop {
        match receipt.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn owed(seq: u64, subscriber: SubscriberKey) -> DeliveryRow {
    DeliveryRow {
        seq: Seq(seq),
        subscriber,
        line: -7,
        state: DeliveryState::Waiting,
        tries: 2,
        forgiven: 1,
        interrupted: 1,
        published: at(seq),
        moment: at(seq + 1),
        fault: Some(Fault::new(Code::HandlerLate, "it slept")),
    }
}

fn part(store: &Store, stream: &str, seqs: &[u64], changes: Vec<Change>) -> StreamPart {
    let frame = |seq: &u64| Prepared::try_from(draft(*seq, small("event"))).unwrap();
    let frames = seqs.iter().map(frame).collect();
    StreamPart { log: store.stream(&id(stream)).unwrap(), frames, changes }
}

fn append(store: &Store, parts: Vec<StreamPart>) -> Result<(), Problem> {
    wait(store.append_together(parts, CommitPriority::Awaited)?)
}

fn all(store: &Store, stream: &str) -> Vec<DeliveryRow> {
    store.deliveries(&id(stream), |_| true).unwrap()
}

#[test]
fn frames_and_rows_come_back_as_they_were_handed_over() {
    let home = Home::new();
    let (one, two) = (home.store.subscriber("one").unwrap(), home.store.subscriber("two").unwrap());
    assert_eq!(home.store.subscriber("one").unwrap(), one, "a name keeps its number");
    let rows = vec![Change::Put(owed(0, two)), Change::Put(owed(0, one)), Change::Put(owed(1, one))];
    append(&home.store, vec![part(&home.store, "bus.00", &[0, 1], rows)]).unwrap();

    let home = home.reopen();
    assert_eq!(all(&home.store, "bus.00"), [owed(0, one), owed(0, two), owed(1, one)]);
    assert_eq!(home.store.delivery(&id("bus.00"), Seq(1), one).unwrap(), Some(owed(1, one)));
    assert_eq!(home.store.delivery(&id("bus.00"), Seq(1), two).unwrap(), None);
    assert_eq!(home.store.subscribers().unwrap(), [(one, "one".to_owned()), (two, "two".to_owned())]);

    let dead = DeliveryRow { state: DeliveryState::Dead, fault: None, ..owed(1, one) };
    let changes = vec![Change::Put(dead.clone()), Change::Remove { seq: Seq(0), subscriber: two }];
    append(&home.store, vec![part(&home.store, "bus.00", &[], changes)]).unwrap();
    assert_eq!(all(&home.store, "bus.00"), [owed(0, one), dead]);
    assert_eq!(home.findings(), []);
}

#[test]
fn nothing_is_written_if_one_part_cannot_be() {
    let home = Home::new();
    let one = home.store.subscriber("one").unwrap();
    append(&home.store, vec![part(&home.store, "bus.00", &[0], vec![])]).unwrap();
    let parts = vec![
        part(&home.store, "bus.01", &[0], vec![Change::Put(owed(0, one))]),
        part(&home.store, "bus.00", &[5], vec![Change::Put(owed(5, one))]),
    ];
    assert_eq!(append(&home.store, parts).unwrap_err().code, Code::StoreGap);
    assert_eq!(home.store.head(&id("bus.01")).unwrap(), None);
    assert_eq!((all(&home.store, "bus.00"), all(&home.store, "bus.01")), (vec![], vec![]));

    let again = part(&home.store, "bus.01", &[0], vec![]);
    append(&home.store, vec![again, part(&home.store, "bus.00", &[1], vec![])]).unwrap();
    assert_eq!(home.findings(), [], "the streams themselves are intact");
}

#[test]
fn rows_without_a_frame_are_refused() {
    let home = Home::new();
    let one = home.store.subscriber("one").unwrap();
    let parts = vec![part(&home.store, "bus.00", &[], vec![Change::Put(owed(0, one))])];
    assert_eq!(append(&home.store, parts).unwrap_err().code, Code::StoreMissing);
    assert_eq!(home.findings(), []);
}

#[test]
fn a_receipt_of_a_closed_log_says_so() {
    let home = Home::new();
    let log = home.stream("bus.00");
    let part = part(&home.store, "bus.00", &[0], vec![]);
    let receipt = home.store.append_together(vec![part], CommitPriority::None).unwrap();
    let Home { store, folder: _folder } = home;
    let other = store.clone();
    store.close();
    assert_eq!(wait(receipt), Ok(()), "what was handed over before is written");
    let late = StreamPart { log, frames: vec![], changes: vec![] };
    assert_eq!(
        other.append_together(vec![late], CommitPriority::Awaited).err().unwrap().code,
        Code::StoreUnavailable
    );
}

#[test]
fn a_name_finds_its_frame_until_it_is_forgotten() {
    let home = Home::new();
    let name = |text: &str| Digest::of(text.as_bytes());
    let names = (0..2).map(|seq| Change::Name { name: name(&format!("n{seq}")), seq: Seq(seq), at: at(seq) });
    append(&home.store, vec![part(&home.store, "bus.03", &[0, 1], names.collect())]).unwrap();
    assert_eq!(home.store.named(name("n1")).unwrap(), Some((id("bus.03"), Seq(1))));
    assert_eq!(home.store.named(name("n2")).unwrap(), None);
    assert_eq!(home.store.forget_names(at(1)).unwrap(), 1);
    assert_eq!(home.store.named(name("n0")).unwrap(), None);
    assert_eq!(home.store.named(name("n1")).unwrap(), Some((id("bus.03"), Seq(1))));
}

#[test]
fn a_frame_that_is_owed_to_someone_is_not_collected() {
    let home = Home::new();
    let one = home.store.subscriber("one").unwrap();
    let dead = DeliveryRow { state: DeliveryState::Dead, ..owed(2, one) };
    append(&home.store, vec![part(&home.store, "bus.00", &[0, 1, 2, 3, 4], vec![Change::Put(dead)])])
        .unwrap();
    let everything = Retention { max_frames: Some(0), max_age: None };
    let last = |home: &Home| home.store.collectable(&id("bus.00"), everything, Millis(0)).unwrap();
    assert_eq!(last(&home).map(|head| head.seq), Some(Seq(1)));

    home.checkpoint("bus.00", 3);
    let refused = home.store.collect(&id("bus.00"), Seq(3)).unwrap_err();
    assert!(refused.what.contains("frame 2"), "{refused}");

    let remove = vec![Change::Remove { seq: Seq(2), subscriber: one }];
    append(&home.store, vec![part(&home.store, "bus.00", &[], remove)]).unwrap();
    assert_eq!(last(&home).map(|head| head.seq), Some(Seq(4)));
    assert_eq!(home.store.collect(&id("bus.00"), Seq(3)).unwrap().frames, 4);
    assert_eq!(home.findings(), []);
}

#[test]
fn a_row_whose_frame_is_gone_is_found() {
    let home = Home::new();
    let one = home.store.subscriber("one").unwrap();
    append(&home.store, vec![part(&home.store, "bus.00", &[0], vec![Change::Put(owed(0, one))])]).unwrap();
    home.tamper("UPDATE deliveries SET seq = 9");
    assert_eq!(home.named(), ["bus.00/9 delivery_mismatch"]);
}
