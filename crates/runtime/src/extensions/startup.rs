//! Extensions that are starting or about to be restarted: who waits for them, and for how long.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::log::Progress;
use holdfast_contract::registry::ExtensionRef;
use holdfast_kernel::ExpectedExtension;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::clock::Clock;

/// How long after the beginning of its start, or after the end of its preparation, a new turn waits for an extension. One that takes
/// longer delays nobody.
pub(crate) const START_LIMIT: Millis = Millis(10_000);

/// How long after a failure a new turn waits for an extension that is about to be restarted: the first restarts come soon.
const RESTART_LIMIT: Millis = Millis(3_000);

/// How long a call or a resumed turn waits for the content that it is pinned to.
pub(crate) const PINNED_WAIT: Millis = Millis(30_000);

/// What happens once before extensions can start: the installation of their packages and the compilation of their code. The lanes report
/// it here.
pub struct Preparations {
    clock: Arc<dyn Clock>,
    state: Mutex<BTreeMap<ExtensionId, Preparation>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Preparation {
    Running,
    EndedAt(Millis),
}

impl Preparations {
    /// With the clock of the runtime.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// Takes a report of a lane.
    pub fn report(&self, id: &ExtensionId, progress: &Progress) {
        let preparation = match progress {
            Progress::Installing { .. } | Progress::Compiling { .. } => Preparation::Running,
            Progress::Installed { .. } | Progress::Compiled { .. } => {
                Preparation::EndedAt(self.clock.steady())
            }
        };
        self.state.lock().insert(id.clone(), preparation);
    }

    fn of(&self, id: &ExtensionId) -> Option<Preparation> {
        self.state.lock().get(id).copied()
    }

    /// Forgets the others. The end of a preparation that failed is not reported.
    fn retain(&self, expected: &BTreeSet<ExtensionId>) {
        self.state.lock().retain(|id, _| expected.contains(id));
    }
}

/// For what somebody waits while extensions start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartWait {
    /// For the start alone, as a turn does: a preparation delays nobody longer than a start, and what is patient delays nobody.
    Start,
    /// Also for as long as an extension is prepared, and for what is patient: the process that waits ends with its command.
    Preparation,
}

/// The extensions that are expected to be active soon.
#[derive(Default)]
pub(crate) struct Startup {
    state: Mutex<StartupState>,
    changed: Notify,
    preparations: Option<Arc<Preparations>>,
}

#[derive(Default)]
struct StartupState {
    /// Whether it is known which extensions are installed.
    discovered: bool,
    expected: BTreeMap<ExtensionId, (ExpectedExtension, Millis)>,
}

impl Startup {
    pub(crate) fn new(preparations: Option<Arc<Preparations>>) -> Self {
        Self { preparations, ..Self::default() }
    }

    /// From now on the extensions that are expected are all that there are.
    pub(crate) fn discovered(&self) {
        self.state.lock().discovered = true;
        self.changed.notify_waiters();
    }

    /// Adds what is expected now. What is no longer expected stays until [`Startup::update`].
    pub(crate) fn add(&self, expected: impl Iterator<Item = ExpectedExtension>, now: Millis) {
        let mut state = self.state.lock();
        for it in expected {
            let since = match state.expected.get(&it.id) {
                Some((known, since)) if known.restarting == it.restarting => *since,
                _ => now,
            };
            state.expected.insert(it.id.clone(), (it, since));
        }
    }

    /// Sets what is expected.
    pub(crate) fn update(&self, expected: impl Iterator<Item = ExpectedExtension>, now: Millis) {
        let expected: Vec<_> = expected.collect();
        let still: BTreeSet<_> = expected.iter().map(|it| it.id.clone()).collect();
        self.add(expected.into_iter(), now);
        self.state.lock().expected.retain(|id, _| still.contains(id));
        if let Some(preparations) = &self.preparations {
            preparations.retain(&still);
        }
        self.changed.notify_waiters();
    }

    /// The extensions that are starting.
    pub(crate) fn starting(&self) -> Vec<ExtensionId> {
        let state = self.state.lock();
        let starting = state.expected.values().filter(|(it, _)| !it.restarting);
        starting.map(|(it, _)| it.id.clone()).collect()
    }

    /// Whether this content may be active soon.
    fn expects(&self, pinned: &ExtensionRef) -> bool {
        let state = self.state.lock();
        let expected = state.expected.get(&pinned.id);
        !state.discovered || expected.is_some_and(|(it, _)| it.contents.contains(&pinned.digest))
    }

    /// Until when a turn that begins now has to wait at most, if it has to. It waits for extensions that are starting, and
    /// a short time for those that are about to be restarted. After that these are known to be down.
    fn wait_until(&self, wait: StartWait, now: Millis) -> Option<Millis> {
        let state = self.state.lock();
        if !state.discovered {
            return Some(now.plus(START_LIMIT));
        }
        let awaited = |it: &ExpectedExtension| wait == StartWait::Preparation || !it.patient;
        let awaited = state.expected.values().filter(|(it, _)| awaited(it));
        let limits = awaited.map(|(it, since)| match self.preparation(&it.id) {
            _ if it.restarting => since.plus(RESTART_LIMIT),
            // It is looked at again then.
            Some(Preparation::Running) if wait == StartWait::Preparation => now.plus(START_LIMIT),
            Some(Preparation::EndedAt(end)) => end.max(*since).plus(START_LIMIT),
            _ => since.plus(START_LIMIT),
        });
        limits.filter(|until| *until > now).max()
    }

    fn preparation(&self, id: &ExtensionId) -> Option<Preparation> {
        self.preparations.as_ref()?.of(id)
    }

    /// Whether a turn that begins now has to wait.
    pub(crate) fn holds_turns(&self, now: Millis) -> bool {
        self.wait_until(StartWait::Start, now).is_some()
    }

    /// Waits until a turn can begin.
    pub(crate) async fn ready(&self, wait: StartWait, clock: &dyn Clock) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before the check, so that no change in between is missed.
            changed.as_mut().enable();
            let now = clock.steady();
            let Some(until) = self.wait_until(wait, now) else { return };
            tokio::select! {
                () = changed => {}
                () = clock.sleep(until.since(now)) => {}
            }
        }
    }

    /// Waits while this content is expected and `serves` does not find it, until this time. Gives what was found.
    pub(crate) async fn content<T>(
        &self,
        pinned: &ExtensionRef,
        until: Millis,
        clock: &dyn Clock,
        serves: impl Fn() -> Option<T>,
    ) -> Option<T> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let expected = self.expects(pinned);
            if let Some(found) = serves() {
                return Some(found);
            }
            let now = clock.steady();
            if !expected || now >= until {
                return None;
            }
            tokio::select! {
                () = changed => {}
                () = clock.sleep(until.since(now)) => {}
            }
        }
    }
}
