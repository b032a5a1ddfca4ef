//! The handle: opening, publishing, subscribing, closing, and what all its clones share with the conductor.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Problem};
use holdfast_store::Store;
use tokio::sync::{Notify, watch};

use crate::conductor::conduct;
use crate::event::{NewEvent, Published};
use crate::handing::{Report, give_account};
use crate::load;
use crate::outside::{Clock, Entropy};
use crate::state::{Account, Standing, State};
use crate::subscription::{self, Subscription};

/// How the bus behaves as a whole. What one subscriber gets is in its [`Subscription`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Events that are kept in memory for one subscriber; those behind them are read from the log when it is their turn.
    pub resident: usize,
    /// How long a dead letter is kept.
    pub keep_dead_letters: Millis,
    /// How long an idempotency key is remembered.
    pub keep_names: Millis,
    /// How long events are kept for a subscriber that is not there any more.
    pub keep_leftovers: Millis,
}

const DAY: u64 = 24 * 60 * 60 * 1_000;

impl Default for Settings {
    fn default() -> Self {
        Self {
            resident: 1_024,
            keep_dead_letters: Millis(30 * DAY),
            keep_names: Millis(7 * DAY),
            keep_leftovers: Millis(30 * DAY),
        }
    }
}

/// The durable bus. Clones are cheap and are the same bus; when the last one goes without [`Bus::close`], everything stops where it is, as
/// if the process had ended.
#[derive(Clone)]
pub struct Bus(Arc<Handle>);

struct Handle(Arc<Inner>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.state().standing = Standing::Abandoned;
        self.0.wake.notify_one();
    }
}

struct Rouse(Arc<Notify>);

impl Wake for Rouse {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_one();
    }
}

/// What handles, tasks and the conductor share.
pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) settings: Settings,
    pub(crate) tasks: tokio::runtime::Handle,
    /// Wakes the conductor.
    pub(crate) wake: Arc<Notify>,
    /// The same for whoever wants a waker.
    pub(crate) waker: Waker,
    /// Whether the conductor has ended.
    pub(crate) ended: watch::Sender<bool>,
    /// Held while subscriptions change, or rows that the conductor does not touch.
    pub(crate) changing: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    reports: Mutex<Vec<Report>>,
}

impl Bus {
    /// Takes up the bus that this log holds, with these subscribers. To be called where tasks can be spawned.
    pub async fn open(
        store: Store,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        settings: Settings,
        subscriptions: Vec<Subscription>,
    ) -> Result<Self, Problem> {
        let tasks = tokio::runtime::Handle::try_current()
            .map_err(|_| Problem::new(Code::Internal, "the bus was opened where no tasks can be spawned"))?;
        let wake = Arc::new(Notify::new());
        let state = State::new(settings.resident);
        let inner = Arc::new(Inner {
            store,
            clock,
            entropy,
            settings,
            tasks,
            waker: Waker::from(Arc::new(Rouse(Arc::clone(&wake)))),
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
        inner.tasks.spawn(conduct(Arc::clone(&inner)));
        Ok(bus)
    }

    /// Publishes an event. When it returns, the event is on disk, with a row for every subscriber that wants it. Whoever gives up
    /// waiting may have published it all the same; an idempotency key makes it safe to try again.
    pub async fn publish(&self, event: NewEvent) -> Result<Published, Problem> {
        let published = self.publish_many(vec![event]).await?;
        published.first().copied().ok_or_else(|| Problem::new(Code::Internal, "an event got lost"))
    }

    /// Publishes events together: all of them, or none if one cannot be.
    pub async fn publish_many(&self, events: Vec<NewEvent>) -> Result<Vec<Published>, Problem> {
        self.inner().publish(events).await
    }

    /// Sets who subscribes from now on. One that is new gets what is published from now on, and what was left for its name. One that is
    /// not in the list any more gets nothing; what it had not finished is kept for it, and [`Bus::status`] tells how much.
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
            if state.standing != Standing::Open {
                return Err(crate::state::closed());
            }
            state.subscribers.iter_mut().for_each(|subscriber| subscriber.terms = None);
            for (key, terms) in keys.into_iter().zip(subscriptions) {
                let index = state.know(key, &terms.name);
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

    /// Takes no more events, lets handlers end for so long, and stops the rest. What is not finished is for the next time.
    pub async fn close(self, within: Millis) {
        let inner = self.inner();
        let by = inner.clock.now().plus(within);
        inner.state().standing = Standing::Closing { by };
        inner.wake.notify_one();
        let mut ended = inner.ended.subscribe();
        // An error would mean that the conductor is gone, which is what is waited for.
        let _gone = ended.wait_for(|ended| *ended).await;
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0.0
    }
}

impl Inner {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn report(&self, report: Report) {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).push(report);
        self.wake.notify_one();
    }

    pub(crate) fn take_reports(&self) -> Vec<Report> {
        std::mem::take(&mut *self.reports.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn account_for(self: &Arc<Self>, accounts: Vec<Account>) {
        for account in accounts {
            self.tasks.spawn(give_account(Arc::clone(self), account));
        }
    }

    /// Reads or writes the log where that may take its time.
    pub(crate) async fn blocking<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<R, Problem> + Send + 'static,
    ) -> Result<R, Problem> {
        let store = self.store.clone();
        let done = self.tasks.spawn_blocking(move || work(&store)).await;
        done.unwrap_or_else(|error| Err(Problem::new(Code::Internal, format!("a task of the bus: {error}"))))
    }
}
