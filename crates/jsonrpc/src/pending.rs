//! Requests that wait for their responses.

use std::collections::{HashMap, HashSet};

/// Requests in progress, each under an id that is never used again, with what the caller keeps for it.
#[derive(Debug)]
pub struct PendingRequests<T> {
    last_id: u64,
    pending: HashMap<u64, T>,
    /// Cancelled requests whose responses may still arrive.
    cancelled: HashSet<u64>,
}

/// Which request a response belongs to.
#[derive(Debug, PartialEq, Eq)]
pub enum Completion<T> {
    /// A request that waits for it.
    Pending(T),
    /// A request that was cancelled; the response is ignored.
    Cancelled,
    /// No request: it was never made, or has had its response.
    Unknown,
}

impl<T> Default for PendingRequests<T> {
    fn default() -> Self {
        Self { last_id: 0, pending: HashMap::new(), cancelled: HashSet::new() }
    }
}

impl<T> PendingRequests<T> {
    /// Adds a request and returns its id. Ids increase from 1.
    pub fn insert(&mut self, request: T) -> u64 {
        self.last_id += 1;
        self.pending.insert(self.last_id, request);
        self.last_id
    }

    /// Requests that wait for a response.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// A request that waits.
    pub fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        self.pending.get_mut(&id)
    }

    /// Of the requests with the smallest key, the one that has waited longest.
    pub fn oldest_by_mut<K: Ord>(&mut self, key: impl Fn(&T) -> K) -> Option<&mut T> {
        let waiting = self.pending.iter_mut();
        waiting.min_by_key(|(id, request)| (key(request), **id)).map(|(_, request)| request)
    }

    /// Removes the request that a response belongs to.
    pub fn complete(&mut self, id: u64) -> Completion<T> {
        match self.pending.remove(&id) {
            Some(request) => Completion::Pending(request),
            None if self.cancelled.remove(&id) => Completion::Cancelled,
            None => Completion::Unknown,
        }
    }

    /// Cancels a request. Its response is expected once, and then ignored.
    pub fn cancel(&mut self, id: u64) {
        if self.pending.remove(&id).is_some() {
            self.cancelled.insert(id);
        }
    }

    /// Removes every request that waits.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.pending.drain().map(|(_, request)| request)
    }
}
