//! The handle: opening, publishing, subscribing, closing, and what all its clones share with the dispatcher.

use std::sync::Arc;
use std::task::{Wake, Waker};

use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Problem};
use holdfast_store::Store;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};

use crate::dispatch::delivery::{DeliveryReport, report_interrupted};
use crate::dispatch::dispatcher::run;
use crate::event::{NewEvent, Published};
use crate::outside::{Clock, Entropy, SteadyTime};
use crate::state::{BusState, InterruptedDelivery, Queues};
use crate::stored::load;
use crate::subscription::{self, Subscription};

/// How the bus behaves as a whole. What one subscriber gets is in its [`Subscription`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusSettings {
    /// Events that are kept in memory for one subscriber; later ones are read from the log when they are delivered.
    pub resident: usize,
    /// How long a dead letter is kept.
    pub keep_dead_letters: Millis,
    /// How long an idempotency key is remembered.
    pub keep_names: Millis,
    /// How long events are kept for a name that no longer subscribes.
    pub keep_leftovers: Millis,
}

const DAY: u64 = 24 * 60 * 60 * 1_000;

impl Default for BusSettings {
    fn default() -> Self {
        Self {
            resident: 1_024,
            keep_dead_letters: Millis(30 * DAY),
            keep_names: Millis(7 * DAY),
            keep_leftovers: Millis(30 * DAY),
        }
    }
}

/// The durable bus. Clones are cheap and share the bus. When the last one is dropped without [`Bus::close`], everything stops, as if
/// the process had ended.
#[derive(Clone)]
pub struct Bus(Arc<Handle>);

struct Handle(Arc<BusInner>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.state().standing = BusState::Abandoned;
        self.0.wake.notify_one();
    }
}

struct Wakeup(Arc<Notify>);

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_one();
    }
}

/// State shared by handles, tasks and the dispatcher.
pub(crate) struct BusInner {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    /// Notices when the clock is set.
    pub(crate) time: SteadyTime,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) settings: BusSettings,
    pub(crate) tasks: tokio::runtime::Handle,
    /// Wakes the dispatcher.
    pub(crate) wake: Arc<Notify>,
    /// The same as a [`Waker`].
    pub(crate) waker: Waker,
    /// Whether the dispatcher has ended.
    pub(crate) ended: watch::Sender<bool>,
    /// Held while subscriptions change, or rows that the dispatcher does not touch.
    pub(crate) changing: tokio::sync::Mutex<()>,
    state: Mutex<Queues>,
    reports: Mutex<Vec<DeliveryReport>>,
}

impl Bus {
    /// Opens the bus of this log with these subscribers. Must be called inside a tokio runtime.
    pub async fn open(
        store: Store,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        settings: BusSettings,
        subscriptions: Vec<Subscription>,
    ) -> Result<Self, Problem> {
        let tasks = tokio::runtime::Handle::try_current()
            .map_err(|_| Problem::new(Code::Internal, "the bus was opened outside a tokio runtime"))?;
        let wake = Arc::new(Notify::new());
        let state = Queues::new(settings.resident);
        let inner = Arc::new(BusInner {
            store,
            time: SteadyTime::new(clock.clone()),
            clock,
            entropy,
            settings,
            tasks,
            waker: Waker::from(Arc::new(Wakeup(Arc::clone(&wake)))),
            wake,
            ended: watch::Sender::new(false),
            changing: tokio::sync::Mutex::default(),
            state: Mutex::new(state),
            reports: Mutex::default(),
        });
        let loaded = inner.blocking(load::read).await?;
        inner.state().adopt(loaded);
        let bus = Self(Arc::new(Handle(Arc::clone(&inner))));
        bus.subscribe(subscriptions).await?;
        inner.tasks.spawn(run(Arc::clone(&inner)));
        Ok(bus)
    }

    /// Publishes an event. When it returns, the event is on disk, with a row for every subscriber that wants it. A caller that stops
    /// waiting may still have published it; an idempotency key makes a retry safe.
    pub async fn publish(&self, event: NewEvent) -> Result<Published, Problem> {
        let published = self.publish_many(vec![event]).await?;
        published
            .first()
            .copied()
            .ok_or_else(|| Problem::new(Code::Internal, "publishing returned no event id"))
    }

    /// Publishes events in one transaction: all of them or, on an error, none.
    pub async fn publish_many(&self, events: Vec<NewEvent>) -> Result<Vec<Published>, Problem> {
        self.inner().publish(events).await
    }

    /// Replaces the list of subscriptions. A new one gets later events and those stored for its name. One that is no longer in the
    /// list gets no more events; its unfinished ones are kept, and [`Bus::status`] shows how many.
    pub async fn subscribe(&self, subscriptions: Vec<Subscription>) -> Result<(), Problem> {
        subscription::check(&subscriptions)?;
        let inner = self.inner();
        let _changing = inner.changing.lock().await;
        let names: Vec<_> = subscriptions.iter().map(|terms| Arc::clone(&terms.name)).collect();
        let keys =
            inner.blocking(move |store| names.iter().map(|name| store.subscriber(name)).collect()).await;
        let keys: Vec<_> = keys?;
        let accounts = {
            let mut state = inner.state();
            if state.standing != BusState::Open {
                return Err(crate::state::closed());
            }
            state.subscribers.iter_mut().for_each(|subscriber| subscriber.terms = None);
            for (key, terms) in keys.into_iter().zip(subscriptions) {
                let index = state.register(key, &terms.name);
                if let Some(subscriber) = state.subscribers.get_mut(index) {
                    subscriber.terms = Some(Arc::new(terms));
                }
            }
            state.forget_targets();
            state.adopt_all_stale()
        };
        inner.account_for(accounts);
        inner.wake.notify_one();
        Ok(())
    }

    /// Looks for events to deliver; call it after a subscriber is no longer paused.
    pub fn wake(&self) {
        self.inner().wake.notify_one();
    }

    /// Graceful shutdown: accepts no more events, waits for handlers up to the timeout, and stops the others. Unfinished events are
    /// delivered after the next start.
    pub async fn close(self, within: Millis) {
        let inner = self.inner();
        let by = inner.clock.now().plus(within);
        inner.state().standing = BusState::Closing { by };
        inner.wake.notify_one();
        let mut ended = inner.ended.subscribe();
        // An error means that the dispatcher is gone, which is what this waits for.
        let _gone = ended.wait_for(|ended| *ended).await;
    }

    pub(crate) fn inner(&self) -> &Arc<BusInner> {
        &self.0.0
    }
}

impl BusInner {
    pub(crate) fn state(&self) -> MutexGuard<'_, Queues> {
        self.state.lock()
    }

    pub(crate) fn report(&self, report: DeliveryReport) {
        self.reports.lock().push(report);
        self.wake.notify_one();
    }

    pub(crate) fn take_reports(&self) -> Vec<DeliveryReport> {
        std::mem::take(&mut *self.reports.lock())
    }

    pub(crate) fn account_for(self: &Arc<Self>, accounts: Vec<InterruptedDelivery>) {
        for account in accounts {
            self.tasks.spawn(report_interrupted(Arc::clone(self), account));
        }
    }

    /// Reads or writes the log on a thread that may block.
    pub(crate) async fn blocking<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<R, Problem> + Send + 'static,
    ) -> Result<R, Problem> {
        let store = self.store.clone();
        let done = self.tasks.spawn_blocking(move || work(&store)).await;
        done.unwrap_or_else(|error| Err(Problem::new(Code::Internal, format!("a task of the bus: {error}"))))
    }
}
