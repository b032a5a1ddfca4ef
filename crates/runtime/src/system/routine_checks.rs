//! Calls of extensions that are repeated and rarely have another outcome: health checks, and the questions of set-up functions. Also
//! those that leave no frame of their own: events about turns that are kept in memory, and context providers that `context.enrich` asks.
//!
//! A frame for each would fill the log. An outcome of a check that differs from the one before has a frame of its own; everything else is
//! counted, and the counts are recorded together with a health check: the first one after an activation was counted for the first time,
//! then one in an hour, and when the system stops. The connections to ports that
//! extensions listen on are counted with them, and recorded once a minute while there are any.

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
    /// The activations that were recorded.
    recorded: BTreeSet<Activation>,
    /// The last outcome of each set-up function.
    setup: HashMap<(ExtensionId, &'static str), (Generation, Digest)>,
}

#[derive(Default)]
struct Count {
    healthy: u32,
    setup: u32,
    events: u32,
    events_failed: u32,
    events_missed: u32,
    enriched: u32,
    enriched_failed: u32,
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

    /// Counts an event about a turn that was handed over, with those before it that were dropped.
    pub(crate) fn handed_event(&self, extension: &ExtensionRef, missed: u64, failed: bool, now: Millis) {
        let mut counts = self.0.lock();
        let count = counts.of(extension, now);
        count.events += 1;
        count.events_failed += u32::from(failed);
        count.events_missed = count.events_missed.saturating_add(u32::try_from(missed).unwrap_or(u32::MAX));
    }

    /// Counts a context provider that was asked outside of a turn.
    pub(crate) fn enriched(&self, extension: &ExtensionRef, failed: bool, now: Millis) {
        let mut counts = self.0.lock();
        let count = counts.of(extension, now);
        count.enriched += 1;
        count.enriched_failed += u32::from(failed);
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
        counts.recorded.extend(counted.keys().cloned());
        let checks = counted.into_iter().map(|((id, generation), count)| CheckCount {
            id,
            generation,
            healthy: count.healthy,
            setup: count.setup,
            events: count.events,
            events_failed: count.events_failed,
            events_missed: count.events_missed,
            enriched: count.enriched,
            enriched_failed: count.enriched_failed,
            ports: count.ports.into_values().collect(),
        });
        Some(ExtensionsChecked { since, checks: checks.collect() })
    }
}

#[cfg(test)]
#[path = "routine_checks_tests.rs"]
mod tests;
