//! The backoff before a failed task is retried. The jitter is a parameter and recorded, so that a replay waits as long.

use holdfast_contract::ids::Millis;

/// Exponential backoff with a limited number of attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The longest wait after the first failure; it doubles with each further one.
    pub first: Millis,
    /// The longest wait.
    pub cap: Millis,
    /// The number of attempts; after as many failures there is no retry.
    pub attempts: u32,
}

/// A fraction: 0 is nothing, `u32::MAX` the whole. Drawn by the caller, and recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter(pub u32);

impl Default for Backoff {
    /// For tasks: ten seconds, doubled up to a quarter of an hour, five attempts.
    fn default() -> Self {
        Self { first: Millis(10_000), cap: Millis(900_000), attempts: 5 }
    }
}

impl Backoff {
    /// The wait after so many failures, at least one: between half of the full wait and all of it, by the jitter, so that tasks that
    /// failed together are not retried together. None if there is no retry.
    pub fn wait(&self, failures: u32, jitter: Jitter) -> Option<Millis> {
        if failures >= self.attempts {
            return None;
        }
        let full = self.first.backoff(failures.saturating_sub(1), self.cap).0;
        let half = full / 2;
        let spread = u128::from(full - half) * u128::from(jitter.0) / u128::from(u32::MAX);
        Some(Millis(half + u64::try_from(spread).unwrap_or(full - half)))
    }
}
