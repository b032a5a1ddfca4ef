//! One subscriber's events in order: a line for each topic and key, of which only the first event can be in delivery.
//!
//! A plain data structure without disk, clock or handlers: the caller reports outcomes and asks for the next event. Lines are served
//! first come, first served.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use holdfast_contract::ids::Millis;
use rustc_hash::FxHashMap;

use crate::event::{BusEvent, EventId};
use crate::outside::moved;

/// After so many process crashes during its delivery an event is delivered alone, so that it cannot interrupt other deliveries if
/// it caused the crashes.
const SUSPECT_ATTEMPTS: u32 = 2;

/// An event that a subscriber has not finished with.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) id: EventId,
    /// The event, unless it is read from the log when it is delivered.
    pub(crate) event: Option<Arc<BusEvent>>,
    pub(crate) published: Millis,
    /// How many attempts were started.
    pub(crate) tries: u32,
    /// How many of these do not count.
    pub(crate) forgiven: u32,
    /// How many of the last attempts in a row ended with a crash of the process.
    pub(crate) interrupted: u32,
    /// When it is retried; none if it can be delivered now.
    pub(crate) due: Option<Millis>,
    /// Whether an earlier process left it in delivery.
    pub(crate) stale: bool,
}

impl Item {
    /// An event without an attempt.
    pub(crate) fn fresh(event: Arc<BusEvent>) -> Self {
        let (id, published) = (event.id, event.at);
        let event = Some(event);
        Self { id, event, published, tries: 0, forgiven: 0, interrupted: 0, due: None, stale: false }
    }

    /// The current or last attempt, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.tries - self.forgiven
    }

    fn is_suspicious(&self) -> bool {
        self.interrupted >= SUSPECT_ATTEMPTS
    }
}

#[derive(Debug)]
struct Line {
    head: Item,
    rest: VecDeque<Item>,
    stand: LineState,
}

/// The state of a line, which is that of its first event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineState {
    /// It can be delivered.
    Ready,
    UnderWay,
    /// It waits for its retry time.
    Delayed,
}

/// An event to deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    pub(crate) line: i64,
    /// Whether no other suspicious event may be in delivery at the same time.
    pub(crate) alone: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    lines: FxHashMap<i64, Line>,
    /// Ready lines in order. Entries that are no longer ready are skipped.
    ready: VecDeque<i64>,
    ready_alone: VecDeque<i64>,
    /// Delayed lines by time. Entries that are no longer delayed are skipped.
    delayed: BinaryHeap<Reverse<(Millis, i64)>>,
    open: usize,
}

impl Queue {
    /// How many events are not finished.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// Adds an event at the end of its line. If `immediately` is set and no event is before it, its delivery starts now and this
    /// returns true.
    pub(crate) fn add(&mut self, line: i64, mut item: Item, immediately: bool) -> bool {
        self.open += 1;
        match self.lines.entry(line) {
            Entry::Occupied(mut found) => {
                found.get_mut().rest.push_back(item);
                false
            }
            Entry::Vacant(place) => {
                let immediately = immediately && self.ready.is_empty() && item.due.is_none();
                let stand = if immediately { LineState::UnderWay } else { LineState::Ready };
                item.tries += u32::from(immediately);
                place.insert(Line { head: item, rest: VecDeque::new(), stand });
                if !immediately {
                    self.enqueue_line(line);
                }
                immediately
            }
        }
    }

    /// Adds an event at its position in its line, but never before the first.
    pub(crate) fn bring_back(&mut self, line: i64, item: Item) {
        match self.lines.get_mut(&line) {
            Some(found) => {
                let place = found.rest.partition_point(|other| other.id < item.id);
                found.rest.insert(place, item);
                self.open += 1;
            }
            None => drop(self.add(line, item, false)),
        }
    }

    /// Starts the delivery of the next event. One that must be delivered alone is returned only if `alone`.
    pub(crate) fn next(&mut self, alone: bool) -> Option<Next> {
        let found = Self::pop_ready(&mut self.ready, &self.lines).map(|line| Next { line, alone: false });
        let suspicious = || Self::pop_ready(&mut self.ready_alone, &self.lines);
        let found =
            found.or_else(|| alone.then(suspicious).flatten().map(|line| Next { line, alone: true }))?;
        let line = self.lines.get_mut(&found.line)?;
        line.stand = LineState::UnderWay;
        line.head.tries += 1;
        Some(found)
    }

    fn pop_ready(ready: &mut VecDeque<i64>, lines: &FxHashMap<i64, Line>) -> Option<i64> {
        loop {
            let line = ready.pop_front()?;
            if lines.get(&line).is_some_and(|found| found.stand == LineState::Ready) {
                return Some(line);
            }
        }
    }

    /// Whether an event that is not suspicious can be delivered now.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether others of the line wait behind its first event.
    pub(crate) fn has_followers(&self, line: i64) -> bool {
        self.lines.get(&line).is_some_and(|found| !found.rest.is_empty())
    }

    /// The first event of a line.
    pub(crate) fn head(&self, line: i64) -> Option<&Item> {
        self.lines.get(&line).map(|found| &found.head)
    }

    /// The first event of a line, to be changed.
    pub(crate) fn head_mut(&mut self, line: i64) -> Option<&mut Item> {
        self.lines.get_mut(&line).map(|found| &mut found.head)
    }

    /// The event in delivery in this line is finished: the next one follows.
    pub(crate) fn finish(&mut self, line: i64) -> Option<Item> {
        let Entry::Occupied(mut found) = self.lines.entry(line) else { return None };
        self.open -= 1;
        match found.get_mut().rest.pop_front() {
            Some(next) => {
                let done = std::mem::replace(&mut found.get_mut().head, next);
                self.enqueue_line(line);
                Some(done)
            }
            None => Some(found.remove().head),
        }
    }

    /// The event in delivery in this line is retried at this time.
    pub(crate) fn delay(&mut self, line: i64, until: Millis) {
        let Some(found) = self.lines.get_mut(&line) else { return };
        found.head.due = Some(until);
        self.enqueue_line(line);
    }

    /// Makes the lines ready whose retry time has come. No retry is further away than the longest pause: one that is was computed
    /// before the clock was put back, by an earlier process.
    pub(crate) fn wake(&mut self, now: Millis, longest: Millis) {
        while let Some(Reverse((due, line))) = self.delayed.peek().copied()
            && (due <= now || due > now.plus(longest))
        {
            if due > now {
                self.delayed.pop();
                if let Some(found) = self.lines.get_mut(&line)
                    && found.stand == LineState::Delayed
                    && found.head.due == Some(due)
                {
                    found.head.due = Some(now.plus(longest));
                    self.enqueue_line(line);
                }
                continue;
            }
            self.delayed.pop();
            let Some(found) = self.lines.get_mut(&line) else { continue };
            if found.stand == LineState::Delayed && found.head.due == Some(due) {
                found.head.due = None;
                self.enqueue_line(line);
            }
        }
    }

    /// Moves every retry time with the clock.
    pub(crate) fn clock_was_set(&mut self, jump: i64) {
        let items =
            self.lines.values_mut().flat_map(|line| std::iter::once(&mut line.head).chain(&mut line.rest));
        items.filter_map(|item| item.due.as_mut()).for_each(|due| *due = moved(*due, jump));
        let delayed = std::mem::take(&mut self.delayed).into_iter();
        self.delayed = delayed.map(|Reverse((due, line))| Reverse((moved(due, jump), line))).collect();
    }

    /// The next retry time.
    pub(crate) fn next_due(&self) -> Option<Millis> {
        self.delayed.peek().map(|Reverse((due, _))| *due)
    }

    /// The lines whose first event an earlier process left in delivery. They stay in delivery until an outcome is reported.
    pub(crate) fn take_stale(&mut self) -> Vec<i64> {
        let stale = self.lines.iter_mut().filter(|(_, line)| line.head.stale);
        let mut taken: Vec<_> = stale
            .map(|(line, found)| {
                found.head.stale = false;
                found.stand = LineState::UnderWay;
                (found.head.id, *line)
            })
            .collect();
        taken.sort_unstable();
        taken.into_iter().map(|(_, line)| line).collect()
    }

    /// Marks the first event of a line as in delivery.
    pub(crate) fn resume(&mut self, line: i64, id: EventId) {
        if let Some(found) = self.lines.get_mut(&line).filter(|found| found.head.id == id) {
            found.stand = LineState::UnderWay;
            found.head.stale = false;
        }
    }

    /// Removes the events that `old` selects, except those in delivery.
    pub(crate) fn remove_where(&mut self, old: impl Fn(&Item) -> bool) -> Vec<Item> {
        let mut removed = Vec::new();
        let lines: Vec<i64> = self.lines.keys().copied().collect();
        for line in lines {
            let Some(found) = self.lines.get_mut(&line) else { continue };
            let (gone, kept): (VecDeque<_>, _) = found.rest.drain(..).partition(|item| old(item));
            found.rest = kept;
            self.open -= gone.len();
            removed.extend(gone);
            if found.stand != LineState::UnderWay && old(&found.head) {
                removed.extend(self.finish(line));
            }
        }
        removed.sort_by_key(|item| item.id);
        removed
    }

    /// When the oldest event that is not finished was published.
    pub(crate) fn oldest(&self) -> Option<Millis> {
        self.lines.values().map(|line| line.head.published).min()
    }

    /// How many events wait for the retry time of the first of their line.
    pub(crate) fn delayed(&self) -> usize {
        let delayed = self.lines.values().filter(|line| line.stand == LineState::Delayed);
        delayed.map(|line| 1 + line.rest.len()).sum()
    }

    fn enqueue_line(&mut self, line: i64) {
        let Some(found) = self.lines.get_mut(&line) else { return };
        match found.head.due {
            Some(due) => {
                found.stand = LineState::Delayed;
                self.delayed.push(Reverse((due, line)));
            }
            None => {
                found.stand = LineState::Ready;
                if found.head.is_suspicious() {
                    self.ready_alone.push_back(line)
                } else {
                    self.ready.push_back(line)
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
