//! Calls of extensions that are repeated and rarely have another outcome: health checks, and the questions of set-up functions.
//!
//! A frame for each would fill the log of an idle home. An outcome that differs from the one before has a frame of its own; those that
//! are the same are counted, and the counts are recorded together: as soon as an activation is checked for the first time, then once an
//! hour, and when the system stops. The connections to ports that extensions listen on are counted with them, and recorded once a minute
//! while there are any.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use holdfast_contract::digest::Digest;
use holdfast_contract::ids::{ExtensionId, Generation, Millis};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::system_frames::{CheckCount, ExtensionsChecked, PortUse};
use parking_lot::Mutex;

/// How often counts are recorded while no other activation is checked.
const RECORD_EVERY: Millis = Millis(60 * 60 * 1_000);
/// The same while connections were counted.
const RECORD_PORTS_EVERY: Millis = Millis(60 * 1_000);

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
    /// By port.
    ports: BTreeMap<u16, PortUse>,
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

    /// Counts connections to the ports of an extension.
    pub(crate) fn connected(&self, extension: &ExtensionRef, ports: Vec<PortUse>, now: Millis) {
        if ports.is_empty() {
            return;
        }
        let mut counts = self.0.lock();
        let counted = &mut counts.of(extension, now).ports;
        for more in ports {
            match counted.get_mut(&more.port) {
                None => drop(counted.insert(more.port, more)),
                Some(all) => {
                    all.connections = all.connections.saturating_add(more.connections);
                    all.refused = all.refused.saturating_add(more.refused);
                    all.received = all.received.saturating_add(more.received);
                    all.sent = all.sent.saturating_add(more.sent);
                }
            }
        }
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
        let has_ports = counts.counts.values().any(|count| !count.ports.is_empty());
        let every = if has_ports { RECORD_PORTS_EVERY } else { RECORD_EVERY };
        let is_late = counts.since.is_some_and(|since| now.since(since) >= every);
        drop(counts);
        if is_new || is_late { self.take() } else { None }
    }

    /// Everything that was counted and is not recorded yet.
    pub(crate) fn take(&self) -> Option<ExtensionsChecked> {
        let mut counts = self.0.lock();
        let since = counts.since.take()?;
        let counted = std::mem::take(&mut counts.counts);
        counts.recorded = counted.keys().cloned().collect();
        let checks = counted.into_iter().map(|((id, generation), Count { healthy, setup, ports })| {
            CheckCount { id, generation, healthy, setup, ports: ports.into_values().collect() }
        });
        Some(ExtensionsChecked { since, checks: checks.collect() })
    }
}

#[cfg(test)]
#[path = "routine_checks_tests.rs"]
mod tests;
