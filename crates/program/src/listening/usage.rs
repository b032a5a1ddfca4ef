//! Counts the connections to the ports of an extension, until they are recorded.

use std::collections::BTreeMap;

use holdfast_contract::manifest::ListenPort;
use holdfast_contract::system_frames::PortUse;
use parking_lot::Mutex;

/// The connections that were counted and are not taken yet.
#[derive(Default)]
pub struct PortCounters(Mutex<BTreeMap<ListenPort, PortUse>>);

impl PortCounters {
    /// What was counted since the last time.
    pub fn take(&self) -> Vec<PortUse> {
        std::mem::take(&mut *self.0.lock()).into_values().collect()
    }

    pub(crate) fn connected(&self, port: ListenPort) {
        self.count(port, |counted| counted.connections += 1);
    }

    pub(crate) fn refused(&self, port: ListenPort) {
        self.count(port, |counted| counted.refused += 1);
    }

    pub(crate) fn received(&self, port: ListenPort, bytes: u64) {
        self.count(port, |counted| counted.received += bytes);
    }

    pub(crate) fn sent(&self, port: ListenPort, bytes: u64) {
        self.count(port, |counted| counted.sent += bytes);
    }

    fn count(&self, port: ListenPort, change: impl FnOnce(&mut PortUse)) {
        let unused = PortUse { port: port.number(), connections: 0, refused: 0, received: 0, sent: 0 };
        change(self.0.lock().entry(port).or_insert(unused));
    }
}
