//! Calls of extensions that are repeated and rarely have another outcome: health checks, and the questions of set-up functions.
//!
//! A frame for each would fill the log of an idle home. An outcome that differs from the one before has a frame of its own; those that
//! are the same are counted, and the counts are recorded together: as soon as an activation is checked for the first time, then once an
//! hour, and when the system stops.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use holdfast_contract::digest::Digest;
use holdfast_contract::ids::{ExtensionId, Generation, Millis};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::system_frames::{CheckCount, ExtensionsChecked};
use parking_lot::Mutex;

/// How often counts are recorded while no other activation is checked.
const RECORD_EVERY: Millis = Millis(60 * 60 * 1_000);

type Activation = (ExtensionId, Generation);

/// The calls that were counted and are not recorded yet.
#[derive(Default)]
pub(crate) struct RoutineChecks(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    /// When the first of them was made.
    since: Option<Millis>,
    counts: BTreeMap<Activation, Count>,
    /// The activations of the last record.
    recorded: BTreeSet<Activation>,
    /// The last outcome of each set-up function.
    setup: HashMap<(ExtensionId, &'static str), (Generation, Digest)>,
}

#[derive(Default)]
struct Count {
    healthy: u32,
    setup: u32,
}

impl Counts {
    fn of(&mut self, extension: &ExtensionRef, now: Millis) -> &mut Count {
        self.since.get_or_insert(now);
        self.counts.entry((extension.id.clone(), extension.generation)).or_default()
    }
}

impl RoutineChecks {
    /// Counts a health check that passed.
    pub(crate) fn passed(&self, extension: &ExtensionRef, now: Millis) {
        self.0.lock().of(extension, now).healthy += 1;
    }

    /// Whether the outcome of a set-up function is another than the one before of the same activation. If it is the same, it is counted.
    pub(crate) fn setup_differs(
        &self,
        extension: &ExtensionRef,
        function: &'static str,
        outcome: Digest,
        now: Millis,
    ) -> bool {
        let mut counts = self.0.lock();
        let latest = (extension.generation, outcome);
        let differs = counts.setup.insert((extension.id.clone(), function), latest) != Some(latest);
        if !differs {
            counts.of(extension, now).setup += 1;
        }
        differs
    }

    /// What is to be recorded now, if anything is.
    pub(crate) fn due(&self, now: Millis) -> Option<ExtensionsChecked> {
        let counts = self.0.lock();
        let is_new = counts.counts.keys().any(|activation| !counts.recorded.contains(activation));
        let is_late = counts.since.is_some_and(|since| now.since(since) >= RECORD_EVERY);
        drop(counts);
        if is_new || is_late { self.take() } else { None }
    }

    /// Everything that was counted and is not recorded yet.
    pub(crate) fn take(&self) -> Option<ExtensionsChecked> {
        let mut counts = self.0.lock();
        let since = counts.since.take()?;
        let counted = std::mem::take(&mut counts.counts);
        counts.recorded = counted.keys().cloned().collect();
        let checks = counted.into_iter().map(|((id, generation), Count { healthy, setup })| CheckCount {
            id,
            generation,
            healthy,
            setup,
        });
        Some(ExtensionsChecked { since, checks: checks.collect() })
    }
}

#[cfg(test)]
#[path = "routine_checks_tests.rs"]
mod tests;
