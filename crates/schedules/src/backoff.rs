//! How long to wait before something that failed is tried again. Chance comes in as a recorded number, so that a replay waits as long.

use holdfast_contract::ids::Millis;

/// Waiting times that grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The longest wait after the first failure.
    pub first: Millis,
    /// How many times as long the next wait is.
    pub factor: u32,
    /// No wait is longer.
    pub cap: Millis,
    /// How often it is tried altogether; after as many failures it is given up.
    pub attempts: u32,
}

/// A part of a whole: 0 is none of it, `u32::MAX` all. Drawn by the caller, and recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter(pub u32);

impl Default for Backoff {
    /// For tasks: ten seconds, doubled up to a quarter of an hour, five attempts.
    fn default() -> Self {
        Self { first: Millis(10_000), factor: 2, cap: Millis(900_000), attempts: 5 }
    }
}

impl Backoff {
    /// How long to wait after so many failures, of which there is one at least: between half of the full wait and all of it, as the jitter
    /// says, so that what failed together is not tried again together. None when it is given up.
    pub fn wait(&self, failures: u32, jitter: Jitter) -> Option<Millis> {
        if failures >= self.attempts {
            return None;
        }
        let growth = u64::from(self.factor).saturating_pow(failures.saturating_sub(1));
        let full = self.first.0.saturating_mul(growth).min(self.cap.0);
        let half = full / 2;
        let spread = u128::from(full - half) * u128::from(jitter.0) / u128::from(u32::MAX);
        Some(Millis(half + u64::try_from(spread).unwrap_or(full - half)))
    }
}
