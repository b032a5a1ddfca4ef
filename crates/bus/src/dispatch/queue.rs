//! One subscriber's events in their order: lines of events of one topic and key, of which only the first can be under way.
//!
//! A plain data structure. It knows nothing of disks, clocks or handlers; whoever holds it says what became of an event, and asks what
//! comes next. Lines take turns, first come, first served.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use holdfast_contract::ids::Millis;

use crate::event::{BusEvent, EventId};
use crate::mixed::MixedMap;

/// So many processes have ended while an event was under way, and it is handed over alone: if it is the one that ends them, it
/// takes no other along.
const SUSPECT_ATTEMPTS: u32 = 2;

/// An event that a subscriber has not finished with.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) id: EventId,
    /// The event, unless it is to be read back when it is needed.
    pub(crate) event: Option<Arc<BusEvent>>,
    pub(crate) published: Millis,
    /// How often it was handed over.
    pub(crate) tries: u32,
    /// How many of these no longer count.
    pub(crate) forgiven: u32,
    /// How many of the last ones in a row ended with the process.
    pub(crate) interrupted: u32,
    /// When it is to be tried again; nothing for one that can go at any time.
    pub(crate) due: Option<Millis>,
    /// Whether a process that is gone had it under way.
    pub(crate) stale: bool,
}

impl Item {
    /// An event that nobody has had yet.
    pub(crate) fn fresh(event: Arc<BusEvent>) -> Self {
        let (id, published) = (event.id, event.at);
        let event = Some(event);
        Self { id, event, published, tries: 0, forgiven: 0, interrupted: 0, due: None, stale: false }
    }

    /// The attempt that is under way or was made last, from 1.
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

/// How a line stands, which is how its first event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineState {
    /// It is its turn when it comes.
    Ready,
    UnderWay,
    /// It waits for its time.
    Delayed,
}

/// An event that is to be handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    pub(crate) line: i64,
    /// Whether no other of its kind may be under way meanwhile.
    pub(crate) alone: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    lines: MixedMap<i64, Line>,
    /// Lines that are ready, in the order of their turn. One that is not ready any more is passed over.
    ready: VecDeque<i64>,
    ready_alone: VecDeque<i64>,
    /// Lines that wait for their time. One that does not wait any more is passed over.
    delayed: BinaryHeap<Reverse<(Millis, i64)>>,
    open: usize,
}

impl Queue {
    /// How many events are not finished.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// Adds an event behind all others of its line. If `at_once` and nothing is before it, it is under way now, and the answer
    /// is true.
    pub(crate) fn add(&mut self, line: i64, mut item: Item, at_once: bool) -> bool {
        self.open += 1;
        match self.lines.entry(line) {
            Entry::Occupied(mut found) => {
                found.get_mut().rest.push_back(item);
                false
            }
            Entry::Vacant(place) => {
                let at_once = at_once && self.ready.is_empty() && item.due.is_none();
                let stand = if at_once { LineState::UnderWay } else { LineState::Ready };
                item.tries += u32::from(at_once);
                place.insert(Line { head: item, rest: VecDeque::new(), stand });
                if !at_once {
                    self.enqueue_line(line);
                }
                at_once
            }
        }
    }

    /// Adds an event at its place in its line, though never before one that is already first.
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

    /// The next event whose turn it is, which is under way from now on. One that must be alone comes only if `alone`.
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

    fn pop_ready(ready: &mut VecDeque<i64>, lines: &MixedMap<i64, Line>) -> Option<i64> {
        loop {
            let line = ready.pop_front()?;
            if lines.get(&line).is_some_and(|found| found.stand == LineState::Ready) {
                return Some(line);
            }
        }
    }

    /// Whether anything but a suspicious event could be handed over now.
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

    /// The event under way in this line is over: the one behind it is next.
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

    /// The event under way in this line waits until then and is tried again.
    pub(crate) fn delay(&mut self, line: i64, until: Millis) {
        let Some(found) = self.lines.get_mut(&line) else { return };
        found.head.due = Some(until);
        self.enqueue_line(line);
    }

    /// Lets those whose time has come take their turn.
    pub(crate) fn wake(&mut self, now: Millis) {
        while let Some(Reverse((due, line))) = self.delayed.peek().copied()
            && due <= now
        {
            self.delayed.pop();
            let Some(found) = self.lines.get_mut(&line) else { continue };
            if found.stand == LineState::Delayed && found.head.due == Some(due) {
                found.head.due = None;
                self.enqueue_line(line);
            }
        }
    }

    /// When the next one's time comes.
    pub(crate) fn next_due(&self) -> Option<Millis> {
        self.delayed.peek().map(|Reverse((due, _))| *due)
    }

    /// The lines whose first event a process that is gone had under way. They count as under way until something is said of them.
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

    /// This event, which is first in its line, is under way all along.
    pub(crate) fn resume(&mut self, line: i64, id: EventId) {
        if let Some(found) = self.lines.get_mut(&line).filter(|found| found.head.id == id) {
            found.stand = LineState::UnderWay;
            found.head.stale = false;
        }
    }

    /// Takes out the events that `old` says yes to, except those under way.
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

    /// How many events wait for the time of the first of their line.
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
                match found.head.is_suspicious() {
                    true => self.ready_alone.push_back(line),
                    false => self.ready.push_back(line),
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
