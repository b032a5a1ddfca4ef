//! The dispatcher task. It wakes when a write is on disk, when a handler has ended, or when a timer is due, and sleeps otherwise.
//!
//! In an iteration it starts the handlers whose attempts are on disk, collects the outcomes of others, stops handlers that exceeded
//! their deadline, and writes outcomes and the next attempts in one transaction. It writes again only when the transaction that it
//! waits for is on disk, so that transactions grow under load.

use std::collections::HashSet;
use std::sync::Arc;

use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::wire::Later;
use holdfast_store::CommitPriority;
use rustc_hash::FxHashMap;
use tokio::task::AbortHandle;

use crate::bus::BusInner;
use crate::dispatch::delivery::{DeliveryReport, deliver};
use crate::outside::moved;
use crate::state::{
    BusState, DeliveryOutcome, DeliveryVerdict, InFlight, PendingWrite, Queues, Start, Subscriber, Ticket,
    WriteBatch,
};
use crate::stored::load;

/// Outcomes after which the next transaction is written although an earlier one is not on disk yet.
const MAX_UNFLUSHED_OUTCOMES: usize = 1024;
/// The pause before the state is reloaded for the second time in a row.
const RELOAD_PAUSE: Millis = Millis(1_000);

/// The result of an iteration.
struct Iteration {
    starts: Vec<Start>,
    /// Handlers that have ended, or must be stopped.
    ended: Vec<Ticket>,
    /// When the next iteration is due at the latest.
    next: Option<Millis>,
    /// Whether timers that were set before mean another moment now.
    clock_was_set: bool,
    then: Then,
}

enum Then {
    Wait,
    /// Reload the state from the log.
    Reload,
    End,
}

/// Runs until the bus is closed.
pub(crate) async fn run(inner: Arc<BusInner>) {
    let mut running: FxHashMap<Ticket, AbortHandle> = FxHashMap::default();
    let mut alarm = Alarm::default();
    loop {
        let iteration = inner.iterate();
        for ticket in iteration.ended {
            if let Some(handle) = running.remove(&ticket) {
                handle.abort();
            }
        }
        for start in iteration.starts {
            let ticket = start.ticket;
            let task = inner.tasks.spawn(deliver(Arc::clone(&inner), start));
            running.insert(ticket, task.abort_handle());
        }
        if iteration.clock_was_set {
            alarm = Alarm::default();
        }
        match iteration.then {
            Then::Wait => {}
            Then::Reload => {
                inner.reload().await;
                continue;
            }
            Then::End => {
                running.into_values().for_each(|handle| handle.abort());
                inner.ended.send_replace(true);
                return;
            }
        }
        alarm.set(&inner, iteration.next);
        tokio::select! {
            biased;
            () = inner.wake.notified() => {}
            () = alarm.fired() => {}
        }
    }
}

/// A timer that is restarted only when it must fire earlier.
#[derive(Default)]
struct Alarm(Option<(Millis, Later<()>)>);

impl Alarm {
    fn set(&mut self, inner: &BusInner, at: Option<Millis>) {
        let Some(at) = at else { return };
        if self.0.as_ref().is_none_or(|(set, _)| at < *set) {
            let span = at.since(inner.clock.now());
            self.0 = Some((at, inner.clock.sleep(span)));
        }
    }

    async fn fired(&mut self) {
        match &mut self.0 {
            Some((_, sleep)) => sleep.await,
            None => std::future::pending().await,
        }
        self.0 = None;
    }
}

impl BusInner {
    fn iterate(&self) -> Iteration {
        let reports = self.take_reports();
        let mut state = self.state();
        // A pause or a deadline is a time that passes. Where the clock was set, the moment at which it is over moves with it.
        let jump = self.time.take_jump();
        if let Some(jump) = jump {
            state.clock_was_set(jump);
        }
        let now = self.clock.now();
        let mut ended = Vec::new();
        let mut starts = state.settle_pipeline(now);
        state.take_up(reports, &mut ended);
        if state.stop_late(now, &mut ended) {
            starts.retain(|start| state.under_way.contains_key(&start.ticket));
        }
        let then = self.decide(&mut state, now);
        let next = state.next_time(now);
        if let Some(first) = state.pipeline.front() {
            first.receipt.on_outcome(&self.waker);
        }
        drop(state);
        fail::fail_point!("bus::after_durable");
        Iteration { starts, ended, next, clock_was_set: jump.is_some(), then }
    }

    /// Writes what is pending and decides how the loop continues.
    fn decide(&self, state: &mut Queues, now: Millis) -> Then {
        let idle = state.pipeline.is_empty();
        let gives_up = matches!(state.standing, BusState::Closing { by } if by <= now);
        if state.standing == BusState::Abandoned || (state.write_failure.is_some() && idle && gives_up) {
            return Then::End;
        }
        if state.write_failure.is_some() {
            return if idle && state.retry_at <= now { Then::Reload } else { Then::Wait };
        }
        self.hand_over(state, now);
        let over = state.under_way.is_empty() && state.outcomes.is_empty() && state.pipeline.is_empty();
        let closing = matches!(state.standing, BusState::Closing { .. });
        if closing && over { Then::End } else { Then::Wait }
    }

    fn hand_over(&self, state: &mut Queues, now: Millis) {
        state.wake(now);
        let on_the_way = |haste| state.pipeline.iter().any(|handed| handed.record == Some(haste));
        if on_the_way(CommitPriority::Awaited) {
            return;
        }
        if on_the_way(CommitPriority::None) && !state.is_pressing() {
            return;
        }
        let mut hand = WriteBatch::default();
        let outcomes = std::mem::take(&mut state.outcomes);
        state.pressing = false;
        state.record(outcomes, now, &*self.entropy, &mut hand);
        state.wake(now);
        state.claim_ready(now, &mut hand);
        if hand.is_empty() {
            return;
        }
        fail::fail_point!("bus::before_record");
        let waits = !hand.starts.is_empty() || state.standing != BusState::Open;
        let haste = if waits { CommitPriority::Awaited } else { CommitPriority::None };
        // A failure is stored in `write_failure`, which the next iteration handles.
        let _receipt = state.hand_over(&self.store, hand, haste, true);
    }

    /// Reloads the state from the log after a failed write.
    async fn reload(self: &Arc<Self>) {
        let loaded = self.blocking(load::read).await;
        let accounts = {
            let mut state = self.state();
            match loaded {
                Ok(loaded) => {
                    state.adopt(loaded);
                    state.adopt_all_stale()
                }
                Err(problem) => {
                    state.meet_trouble(problem, self.clock.now());
                    Vec::new()
                }
            }
        };
        self.account_for(accounts);
    }
}

impl Queues {
    /// Removes completed and failed writes from the pipeline. Returns the deliveries that can start.
    fn settle_pipeline(&mut self, now: Millis) -> Vec<Start> {
        let mut starts = Vec::new();
        while let Some(outcome) = self.pipeline.front().and_then(|handed| handed.receipt.outcome()) {
            let problem = outcome.as_ref().err().cloned();
            let Some(PendingWrite { starts: going, outcomes, names, .. }) = self.pipeline.pop_front() else {
                break;
            };
            match problem {
                None => {
                    self.write_failures = 0;
                    names.iter().for_each(|name| drop(self.names.remove(name)));
                    starts.extend(going);
                }
                Some(problem) => {
                    self.meet_trouble(problem, now);
                    self.take_back(going, outcomes, &names);
                }
            }
        }
        for start in &starts {
            if let Some(subscriber) = self.subscribers.get_mut(start.subscriber) {
                subscriber.deadlines.push_back((now.plus(start.deadline), start.ticket));
            }
        }
        starts
    }

    /// Stops writing until the state has been reloaded: immediately the first time, then after a pause.
    fn meet_trouble(&mut self, problem: Problem, now: Millis) {
        self.write_failure = Some(problem);
        self.retry_at = if self.write_failures == 0 { now } else { now.plus(RELOAD_PAUSE) };
        self.write_failures += 1;
    }

    fn take_up(&mut self, reports: Vec<DeliveryReport>, ended: &mut Vec<Ticket>) {
        for DeliveryReport { ticket, verdict, event } in reports {
            // The report of a handler that was stopped for its deadline is ignored.
            if let Some(under_way) = self.end(ticket) {
                self.push(DeliveryOutcome { under_way, verdict, event });
                ended.push(ticket);
            }
        }
    }

    fn push(&mut self, outcome: DeliveryOutcome) {
        let subscriber = self.subscribers.get(outcome.under_way.subscriber);
        let followed = subscriber.is_some_and(|one| one.queue.has_followers(outcome.under_way.line));
        self.pressing |= followed || self.outcomes.len() >= MAX_UNFLUSHED_OUTCOMES;
        self.outcomes.push(outcome);
    }

    /// Stops handlers that exceeded their deadline, in a shutdown those that wait for something outside, and at its end all. Returns whether it stopped all.
    fn stop_late(&mut self, now: Millis, ended: &mut Vec<Ticket>) -> bool {
        let mut late = Vec::new();
        for subscriber in &mut self.subscribers {
            let is_over = |ticket: &Ticket| !self.under_way.contains_key(ticket);
            while let Some((deadline, ticket)) = subscriber.deadlines.front().copied()
                && (deadline <= now || is_over(&ticket))
            {
                subscriber.deadlines.pop_front();
                late.push(ticket);
            }
            if subscriber.deadlines.len() > 64 + 2 * subscriber.running {
                subscriber.deadlines.retain(|(_, ticket)| !is_over(ticket));
            }
        }
        let fault = Fault::new(Code::HandlerLate, "the handler did not end within its deadline");
        self.stop(late, &DeliveryVerdict::Failed(fault), ended);
        let all = matches!(self.standing, BusState::Closing { by } if by <= now);
        if matches!(self.standing, BusState::Closing { .. }) {
            let fault = Fault::new(Code::HandlerInterrupted, "the bus was closed before the handler ended");
            // Attempts that are not on disk yet are stopped when they are.
            let coming = self.pipeline.iter().flat_map(|handed| &handed.starts);
            let coming: HashSet<_> = coming.map(|start| start.ticket).collect();
            let stops = |under_way: &InFlight| all || under_way.terms.interruptible;
            let started = self.under_way.iter().filter(|(ticket, it)| !coming.contains(ticket) && stops(it));
            let started = started.map(|(ticket, _)| *ticket).collect();
            self.stop(started, &DeliveryVerdict::Stopped(fault), ended);
        }
        all
    }

    fn stop(&mut self, tickets: Vec<Ticket>, verdict: &DeliveryVerdict, ended: &mut Vec<Ticket>) {
        for ticket in tickets {
            if let Some(under_way) = self.end(ticket) {
                self.push(DeliveryOutcome { under_way, verdict: verdict.clone(), event: None });
                ended.push(ticket);
            }
        }
    }

    /// Whether a caller or subscriber waits for something that is not written yet.
    fn is_pressing(&self) -> bool {
        let could_go = |subscriber: &Subscriber| subscriber.has_room() && subscriber.queue.has_ready();
        self.pressing || self.standing != BusState::Open || self.subscribers.iter().any(could_go)
    }

    /// Makes the events ready whose retry time has come.
    fn wake(&mut self, now: Millis) {
        for subscriber in &mut self.subscribers {
            let longest = subscriber.terms.as_ref().map(|terms| terms.backoff.most);
            subscriber.queue.wake(now, longest.unwrap_or(Millis(u64::MAX)));
        }
    }

    /// Moves every timer with the clock.
    fn clock_was_set(&mut self, jump: i64) {
        for subscriber in &mut self.subscribers {
            subscriber.queue.clock_was_set(jump);
            subscriber.deadlines.iter_mut().for_each(|(deadline, _)| *deadline = moved(*deadline, jump));
        }
        self.retry_at = moved(self.retry_at, jump);
        if let BusState::Closing { by } = &mut self.standing {
            *by = moved(*by, jump);
        }
    }

    /// Starts attempts for all events that can be delivered now.
    fn claim_ready(&mut self, now: Millis, hand: &mut WriteBatch) {
        if self.standing != BusState::Open {
            return;
        }
        for index in 0..self.subscribers.len() {
            while let Some(subscriber) = self.subscribers.get_mut(index)
                && subscriber.has_room()
                && let Some(next) = subscriber.queue.next(self.alone.is_none())
            {
                let ticket = self.claim(index, next.line, now, hand);
                if next.alone {
                    self.alone = ticket;
                }
            }
        }
    }

    /// When the next timer is due.
    fn next_time(&self, now: Millis) -> Option<Millis> {
        let times = self.subscribers.iter().flat_map(|subscriber| {
            let deadline = subscriber.deadlines.front().map(|(deadline, _)| *deadline);
            let due = subscriber.terms.as_ref().and_then(|_| subscriber.queue.next_due());
            [deadline, due]
        });
        let closing = match self.standing {
            BusState::Closing { by } => Some(by),
            BusState::Open | BusState::Abandoned => None,
        };
        let retry = self.write_failure.as_ref().map(|_| self.retry_at);
        times.chain([closing, retry]).flatten().filter(|time| *time > now).min()
    }
}
