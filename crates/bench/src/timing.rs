//! Measured durations, and moments that two threads share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Times of one kind.
pub struct Timing {
    /// What was measured.
    pub name: String,
    times: Vec<Duration>,
}

impl Timing {
    pub(crate) fn new(name: impl Into<String>, mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self { name: name.into(), times }
    }

    /// The time that so many percent stay below.
    pub fn at(&self, percent: usize) -> Duration {
        self.times.get(self.times.len().saturating_sub(1) * percent / 100).copied().unwrap_or_default()
    }
}

/// A moment that two parts share.
#[derive(Clone)]
pub(crate) struct Moment(Arc<Mutex<Instant>>);

impl Default for Moment {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Moment {
    pub(crate) fn set(&self) {
        *self.0.lock() = Instant::now();
    }

    pub(crate) fn get(&self) -> Instant {
        *self.0.lock()
    }
}
