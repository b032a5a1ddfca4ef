//! Counters of failures, after which an extension is given up: faults of its calls (then it is rolled back or stopped), restarts because
//! it was unhealthy, and crashes of the whole process while its code was executing. ADR 0018 says which failure leads to what.

use holdfast_contract::digest::Digest;
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::serde::{Deserialize, Serialize};

/// The recent faults of a generation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde", transparent)]
pub(super) struct FaultWindow(Vec<Millis>);

impl FaultWindow {
    const MAX_FAULTS: usize = 3;
    const WINDOW: Millis = Millis(60_000);

    /// Counts a fault. True if there were too many within the window.
    pub fn add(&mut self, now: Millis) -> bool {
        self.0.push(now);
        self.0.retain(|at| now.since(*at) < Self::WINDOW);
        self.0.len() >= Self::MAX_FAULTS
    }

    /// The number of faults within the window, as of the last one.
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }
}

/// Exponential backoff of the restarts of an unhealthy extension, with a maximum number of restarts within a window.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct RestartBackoff {
    count: u32,
    since: Millis,
}

impl RestartBackoff {
    const MAX_RESTARTS: u32 = 6;
    const WINDOW: Millis = Millis(600_000);
    const FIRST_DELAY: Millis = Millis(1_000);
    /// The delay of the last restart that is made.
    const MAX_DELAY: Millis = Millis(32_000);

    /// When to restart after a failure now; none if that was too often.
    pub fn next(&mut self, now: Millis) -> Option<Millis> {
        if self.count == 0 || now.since(self.since) >= Self::WINDOW {
            *self = Self { count: 0, since: now };
        }
        if self.count >= Self::MAX_RESTARTS {
            return None;
        }
        let delay = Self::FIRST_DELAY.backoff(self.count, Self::MAX_DELAY);
        self.count += 1;
        Some(now.plus(delay))
    }
}

/// Crashes of the process while one content was starting.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct CrashCounter {
    count: u32,
    of: Digest,
    /// Whether its code is known to have ended the process. One such crash is enough.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    certain: bool,
}

impl CrashCounter {
    const MAX_CRASHES: u32 = 2;

    /// The code of this content ended the process.
    pub fn caused_by(content: Digest) -> Self {
        Self { count: 1, of: content, certain: true }
    }

    /// One more crash, of this content. Crashes of another content no longer count.
    pub fn with_crash_of(self, content: Digest) -> Self {
        let count = if content == self.of { self.count + 1 } else { 1 };
        Self { count, of: content, certain: false }
    }

    /// Whether there was a crash.
    pub fn any(self) -> bool {
        self.count > 0
    }

    /// Why this content is quarantined, if it is.
    pub fn quarantine(self, content: Digest) -> Option<Fault> {
        if self.of != content || (self.count < Self::MAX_CRASHES && !self.certain) {
            return None;
        }
        if self.certain {
            return Some(Fault::new(Code::ExtensionQuarantined, "its code ended the process"));
        }
        let message = format!("the process died {} times in a row while it was starting", self.count);
        Some(Fault::new(Code::ExtensionQuarantined, message))
    }
}
