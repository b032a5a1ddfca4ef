//! What the scenarios share: a log in a temporary folder, a clock that stands still, and handlers that do as they are told and keep a
//! ledger.

#![allow(dead_code, clippy::unwrap_used, clippy::panic)]

use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use holdfast_bus::{Bus, BusSettings, Clock, Delivery, Entropy, EventId, NewEvent, Published, Subscription};
use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::Later;
use holdfast_store::{Store, StoreOptions};
use tempfile::TempDir;
use tokio::sync::{Notify, oneshot};

/// The moment at which the clock stands at first.
pub const EPOCH: Millis = Millis(1_700_000_000_000);

/// After this a test gives up. It only has to be longer than the slowest machine needs.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// The subscriber and the topic of [`Ledger::barrier`].
const BARRIER: &str = "barrier";

/// A clock that stands still until a test moves it.
#[derive(Clone)]
pub struct FakeClock(Arc<Mutex<Face>>);

struct Face {
    now: Millis,
    /// By how much the machine's clock was set.
    set: i64,
    sleepers: Vec<(Millis, oneshot::Sender<()>)>,
}

impl FakeClock {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Face { now: EPOCH, set: 0, sleepers: Vec::new() })))
    }

    /// Sets the clock forward or back. No time passes.
    pub fn set(&self, by: i64) {
        self.0.lock().unwrap().set += by;
    }

    pub fn advance(&self, span: u64) {
        let mut face = self.0.lock().unwrap();
        face.now = face.now.plus(Millis(span));
        let now = face.now;
        for (_, wake) in face.sleepers.extract_if(.., |(at, _)| *at <= now) {
            let _gone = wake.send(());
        }
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Millis {
        let face = self.0.lock().unwrap();
        Millis(face.now.0.saturating_add_signed(face.set))
    }

    fn steady(&self) -> Millis {
        self.0.lock().unwrap().now
    }

    fn sleep(&self, span: Millis) -> Later<()> {
        let mut face = self.0.lock().unwrap();
        if span == Millis(0) {
            return Box::pin(async {});
        }
        let (wake, woken) = oneshot::channel();
        let at = face.now.plus(span);
        face.sleepers.push((at, wake));
        Box::pin(async move {
            let _gone = woken.await;
        })
    }
}

/// Chance that is the same every time.
pub struct Dice(pub AtomicU64);

impl Entropy for Dice {
    fn draw(&self, count: u32) -> Vec<u8> {
        let drawn = self.0.fetch_add(0x9e37_79b9, Ordering::Relaxed);
        drawn.to_le_bytes().into_iter().cycle().take(count as usize).collect()
    }
}

/// A log, and the outside of a bus on it.
pub struct Lab {
    pub folder: TempDir,
    pub store: Store,
    pub clock: FakeClock,
    pub settings: BusSettings,
}

impl Lab {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("holdfast.db"), StoreOptions::default()).unwrap();
        Self { folder, store, clock: FakeClock::new(), settings: BusSettings::default() }
    }

    pub async fn open(&self, subscriptions: Vec<Subscription>) -> Bus {
        let dice = Arc::new(Dice(AtomicU64::new(1)));
        let clock = Arc::new(self.clock.clone());
        Bus::open(self.store.clone(), clock, dice, self.settings, subscriptions).await.unwrap()
    }

    /// What a killed process would have left, in the hands of another one. The old bus must be gone.
    pub fn restarted(self) -> Self {
        let Self { folder, store, clock, settings } = self;
        store.close();
        let store = Store::open(&folder.path().join("holdfast.db"), StoreOptions::default()).unwrap();
        Self { folder, store, clock, settings }
    }

    /// The frames of the bus of these kinds, as `event kind subscriber …`, partition after partition.
    pub fn story(&self) -> Vec<String> {
        self.store.flush().unwrap();
        let frames = holdfast_bus::streams().flat_map(|stream| self.store.frames(&stream, ..).unwrap());
        frames
            .filter_map(|frame| {
                let id = |seq| EventId::of(&frame.envelope.stream, seq).unwrap();
                Some(match self.store.body(&frame).unwrap() {
                    Body::EventDelivered(body) => {
                        let events: Vec<_> = body.events.iter().map(|seq| id(*seq).to_string()).collect();
                        format!("delivered {} {}", body.subscriber, events.join(" "))
                    }
                    Body::EventRetried(body) => format!(
                        "retried {} {} attempt {} after {}: {}",
                        body.subscriber,
                        id(body.event),
                        body.attempt,
                        body.next.since(EPOCH).0,
                        body.fault.code
                    ),
                    Body::EventDead(body) => {
                        format!("dead {} {} attempts {}", body.subscriber, id(body.event), body.attempts)
                    }
                    Body::EventDiscarded(body) => {
                        format!("discarded {} {}: {}", body.subscriber, id(body.event), body.reason)
                    }
                    _ => return None,
                })
            })
            .collect()
    }

    /// How many rows the log has for undelivered or dead events.
    pub fn rows(&self) -> usize {
        self.store.flush().unwrap();
        holdfast_bus::streams().map(|stream| self.store.deliveries(&stream, |_| true).unwrap().len()).sum()
    }
}

/// One call of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub subscriber: String,
    pub text: String,
    pub attempt: u32,
    pub repeat: bool,
}

/// What a handler does with an event, by its text.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Fails so many times, then takes it.
    Fail(u32),
    Panic,
    Hang,
    /// Blocks until it is released.
    Wait,
}

/// What handlers took, in order, and what they are to do.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Inside>);

#[derive(Default)]
struct Inside {
    taken: Mutex<Vec<Taken>>,
    acts: Mutex<HashMap<(String, String), Act>>,
    news: Notify,
    gate: Notify,
}

impl Ledger {
    /// What this subscriber does when it gets this text.
    pub fn tell(&self, subscriber: &str, text: &str, act: Act) {
        self.0.acts.lock().unwrap().insert((subscriber.to_owned(), text.to_owned()), act);
    }

    pub fn forget(&self, subscriber: &str, text: &str) {
        self.0.acts.lock().unwrap().remove(&(subscriber.to_owned(), text.to_owned()));
    }

    /// Lets those go that wait.
    pub fn let_go(&self) {
        self.0.gate.notify_waiters();
    }

    pub fn subscription(&self, name: &str, patterns: &[&str]) -> Subscription {
        let (ledger, subscriber) = (self.clone(), name.to_owned());
        Subscription::new(name, patterns, move |delivery| ledger.clone().take(subscriber.clone(), delivery))
            .unwrap()
    }

    async fn take(self, subscriber: String, delivery: Delivery) -> Result<(), Fault> {
        let text = delivery.event.payload.to_text();
        let act = self.0.acts.lock().unwrap().get(&(subscriber.clone(), text.clone())).copied();
        let released = self.0.gate.notified();
        let Delivery { attempt, repeat, .. } = delivery;
        self.0.taken.lock().unwrap().push(Taken { subscriber, text, attempt, repeat });
        self.0.news.notify_waiters();
        match act {
            Some(Act::Fail(times)) if attempt <= times => Err(Fault::new(Code::ExtensionFault, "told to")),
            Some(Act::Panic) => panic!("told to"),
            Some(Act::Hang) => std::future::pending().await,
            Some(Act::Wait) => {
                released.await;
                Ok(())
            }
            Some(Act::Fail(_)) | None => Ok(()),
        }
    }

    pub fn taken(&self) -> Vec<Taken> {
        self.0.taken.lock().unwrap().clone()
    }

    /// The texts that a subscriber got, in order.
    pub fn texts(&self, subscriber: &str) -> Vec<String> {
        self.taken()
            .into_iter()
            .filter(|taken| taken.subscriber == subscriber)
            .map(|taken| taken.text)
            .collect()
    }

    /// Waits until no bus has a handler of this ledger any more: the last one has stopped.
    pub async fn released(&self) {
        eventually(|| Arc::strong_count(&self.0) == 1).await;
    }

    /// A subscription for [`Ledger::barrier`].
    pub fn barrier_subscription(&self) -> Subscription {
        self.subscription(BARRIER, &[BARRIER])
    }

    /// Publishes an event and waits for its delivery: whatever was due before has been handed out by then.
    pub async fn barrier(&self, bus: &Bus) {
        let before = self.texts(BARRIER).len();
        publish(bus, BARRIER, BARRIER, "barrier").await;
        eventually(|| self.texts(BARRIER).len() > before).await;
    }

    /// Waits until handlers were called so often.
    pub async fn until(&self, count: usize) {
        eventually(|| self.0.taken.lock().unwrap().len() >= count).await;
    }
}

/// Waits for something that other threads bring about.
#[track_caller]
pub fn eventually(mut happened: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let (deadline, caller) = (Instant::now() + TIMEOUT, Location::caller());
    async move {
        while !happened() {
            assert!(Instant::now() < deadline, "it did not happen: {caller}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Waits until nothing is owed to anyone who subscribes, but for those that wait for their time.
pub async fn settled(bus: &Bus) {
    eventually(|| {
        let status = bus.status();
        status
            .subscribers
            .iter()
            .filter(|one| one.active)
            .all(|one| one.under_way == 0 && one.open == one.delayed)
    })
    .await;
}

pub fn event(topic: &str, text: &str) -> NewEvent {
    NewEvent::new(topic, Content::text(text))
}

pub async fn publish(bus: &Bus, topic: &str, key: &str, text: &str) -> Published {
    bus.publish(event(topic, text).key(key)).await.unwrap()
}
