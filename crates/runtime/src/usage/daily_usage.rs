//! What is used up in a day, by everything and by each extension, and what may be. The books are kept in memory and made again from the
//! log at a start. A model or a tool is asked only while there is something left; a call under way is paid in full.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::ids::{AgentId, ExtensionId, Millis, Seq};
use holdfast_contract::message::{LimitKind, Spent};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::Registry;
use holdfast_contract::session_frames::LimitReached;
use holdfast_kernel::Session;
use holdfast_policy::Caps;
use holdfast_schedules::Zone;
use holdfast_store::{Store, StreamInfo};
use parking_lot::{Mutex, MutexGuard};

use super::cap_place;
use crate::history::rebuild::from_snapshot;
use crate::runtime::Runtime;

/// Something that is bounded in a day, and what was used of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DailyLimit {
    /// The extension whose agents and tools it is about; none for everything together.
    pub extension: Option<ExtensionId>,
    /// What is bounded.
    pub limit: LimitKind,
    /// How much was used.
    pub used: u64,
    /// How much may be.
    pub allowed: u64,
}

/// The books. They are kept only where the policy bounds a day.
pub(crate) struct DailyUsage {
    zone: Zone,
    /// Whether they are enabled; if not, no caller waits for the day's page.
    kept: AtomicBool,
    page: Mutex<Day>,
}

/// A day's page: from when to when it is, and what was used.
#[derive(Default)]
struct Day {
    caps: Caps,
    from: Millis,
    until: Millis,
    /// By everything together.
    all: Spent,
    /// By each extension's agents and tools.
    extensions: BTreeMap<ExtensionId, Spent>,
}

impl DailyUsage {
    pub(crate) fn new(zone: Zone) -> Self {
        Self { zone, kept: AtomicBool::new(false), page: Mutex::default() }
    }

    /// Takes what the policy allows. True if the books are to be opened.
    pub(crate) fn set(&self, caps: Option<&Caps>) -> bool {
        self.page().caps = caps.cloned().unwrap_or_default();
        !self.kept.swap(caps.is_some(), Ordering::Relaxed) && caps.is_some()
    }

    fn page(&self) -> MutexGuard<'_, Day> {
        self.page.lock()
    }

    /// Enters what the log says of today.
    pub(crate) fn restore(&self, store: &Store, registry: &Registry, now: Millis) -> Result<(), Problem> {
        self.page().until = Millis(0);
        let midnight = self.with(now, |page| page.from);
        let mut streams = store.streams()?;
        streams.retain(|info| info.id.is_session() && info.last_at.is_some_and(|last| last >= midnight));
        for info in streams {
            let mut owner =
                collected_speaker(store, &info)?.and_then(|agent| registry.owner(&agent).cloned());
            store.for_each_frame(&info.id, Seq(0), |frame| {
                let told = matches!(
                    frame.envelope.kind,
                    FrameKind::SessionStarted
                        | FrameKind::AgentChanged
                        | FrameKind::ModelReturned
                        | FrameKind::ModelFailed
                        | FrameKind::CompactionProvided
                        | FrameKind::ToolDispatched
                        | FrameKind::TurnEnded
                );
                // Erased and unreadable frames are not counted.
                let Some(Ok(body)) = told.then(|| store.body(&frame)) else {
                    return Ok(ControlFlow::Continue(()));
                };
                match &body {
                    Body::SessionStarted(fact) => owner = registry.owner(&fact.agent).cloned(),
                    Body::AgentChanged(fact) => owner = registry.owner(&fact.agent).cloned(),
                    _ if frame.envelope.at < midnight => {}
                    Body::ToolDispatched(fact) => {
                        self.enter(now, Some(&fact.implementation.id), CALL);
                    }
                    Body::TurnEnded(fact) => {
                        self.enter(now, owner.as_ref(), Spent { time: fact.spent.time, ..Spent::default() });
                    }
                    body => self.enter(now, owner.as_ref(), used_by_model(body)),
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(())
    }

    /// Whether the books are kept.
    pub(crate) fn enabled(&self) -> bool {
        self.kept.load(Ordering::Relaxed)
    }

    /// Enters what was used.
    pub(crate) fn enter(&self, now: Millis, extension: Option<&ExtensionId>, spent: Spent) {
        if spent == Spent::default() || !self.enabled() {
            return;
        }
        self.with(now, |page| {
            page.all = page.all.plus(spent);
            if let Some(extension) = extension {
                let used = page.extensions.entry(extension.clone()).or_default();
                *used = used.plus(spent);
            }
        });
    }

    /// The cap that forbids another call of a model for an agent of this extension.
    pub(crate) fn before_model(&self, now: Millis, extension: Option<&ExtensionId>) -> Option<LimitReached> {
        self.exhausted(now, extension, |kind| {
            !matches!(kind, LimitKind::DayToolCalls | LimitKind::ExtensionToolCalls)
        })
    }

    /// Enters a call of a tool, unless a cap forbids it.
    pub(crate) fn before_tool(&self, now: Millis, extension: &ExtensionId) -> Result<(), Fault> {
        let calls = |kind| matches!(kind, LimitKind::DayToolCalls | LimitKind::ExtensionToolCalls);
        match self.exhausted(now, Some(extension), calls) {
            Some(LimitReached { limit, allowed, .. }) => {
                let what = limit.with_place(Some(&cap_place(limit, Some(extension))));
                let message = format!("`{extension}` was not called: daily limit reached: {allowed} {what}");
                Err(Fault::new(Code::BudgetSpent, message))
            }
            None => {
                self.enter(now, Some(extension), CALL);
                Ok(())
            }
        }
    }

    /// The first cap of these kinds of which nothing is left.
    fn exhausted(
        &self,
        now: Millis,
        extension: Option<&ExtensionId>,
        counts: impl Fn(LimitKind) -> bool,
    ) -> Option<LimitReached> {
        if !self.enabled() {
            return None;
        }
        let concerns =
            |bound: &DailyLimit| bound.extension.is_none() || bound.extension.as_ref() == extension;
        let mut all = self.bounds(now).into_iter().filter(|bound| concerns(bound) && counts(bound.limit));
        let DailyLimit { limit, allowed, used, .. } = all.find(|bound| bound.used >= bound.allowed)?;
        Some(LimitReached { limit, allowed, used })
    }

    /// Everything that is bounded.
    fn bounds(&self, now: Millis) -> Vec<DailyLimit> {
        self.with(now, |page| {
            let day = [(None, page.caps.day.bounds(DAY, &page.all))];
            let own = page.caps.extensions.iter().map(|(id, cap)| {
                let used = page.extensions.get(id).copied().unwrap_or_default();
                (Some(id), cap.bounds(EXTENSION, &used))
            });
            let each = day.into_iter().chain(own).flat_map(|(extension, bounds)| {
                bounds.into_iter().filter_map(move |(limit, allowed, used)| {
                    Some(DailyLimit { extension: extension.cloned(), limit, used, allowed: allowed? })
                })
            });
            each.collect()
        })
    }

    /// Today's page; a new one where the day has changed.
    fn with<T>(&self, now: Millis, look: impl FnOnce(&mut Day) -> T) -> T {
        let mut page = self.page();
        if now >= page.until || now < page.from {
            let (from, until) = self.zone.day(now);
            *page = Day { caps: std::mem::take(&mut page.caps), from, until, ..Day::default() };
        }
        look(&mut page)
    }
}

const CALL: Spent = Spent { turns: 0, tokens: 0, cost_micros: 0, tool_calls: 1, time: Millis(0) };

const DAY: [LimitKind; 4] =
    [LimitKind::DayTokens, LimitKind::DayCost, LimitKind::DayTime, LimitKind::DayToolCalls];
const EXTENSION: [LimitKind; 4] = [
    LimitKind::ExtensionTokens,
    LimitKind::ExtensionCost,
    LimitKind::ExtensionTime,
    LimitKind::ExtensionToolCalls,
];

/// The agent that answers in a session whose first frames were collected.
fn collected_speaker(store: &Store, info: &StreamInfo) -> Result<Option<AgentId>, Problem> {
    if info.first == Some(Seq(0)) {
        return Ok(None);
    }
    Ok(from_snapshot::<Session>(store, &info.id)?.map(|(session, _)| session.agent().clone()))
}

/// What a fact from a model says that it used.
pub(crate) fn used_by_model(body: &Body) -> Spent {
    match body {
        Body::ModelReturned(fact) => fact.usage.into(),
        Body::ModelFailed(fact) => fact.usage.into(),
        Body::CompactionProvided(fact) => fact.usage.into(),
        _ => Spent::default(),
    }
}

impl Runtime {
    /// What is bounded in a day, and what was used of it today.
    pub fn today(&self) -> Vec<DailyLimit> {
        self.inner().usage.daily().bounds(self.inner().clock.now())
    }

    /// Makes today's books again from the log.
    pub(crate) fn rebuild_daily_usage(&self) -> Result<(), Problem> {
        let inner = self.inner();
        if inner.usage.daily().enabled() {
            inner.usage.daily().restore(&inner.store, &self.registry(), inner.clock.now())
        } else {
            Ok(())
        }
    }
}
