//! How often something may fail before it is given up: values that a machine keeps and is asked with the moment at hand.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::ids::Millis;
use crate::problem::{Code, Fault};

/// Faults of late. So many within the window are too many.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FaultWindow(Vec<Millis>);

impl FaultWindow {
    const MOST: usize = 3;
    const WINDOW: Millis = Millis(60_000);

    /// Counts one more, and says whether that is too many.
    pub fn add(&mut self, now: Millis) -> bool {
        self.0.push(now);
        self.0.retain(|at| now.since(*at) < Self::WINDOW);
        self.0.len() >= Self::MOST
    }

    /// How many there were of late.
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }
}

/// Returns after something went down: a few within the window, each after twice the pause.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct RestartBackoff {
    count: u32,
    since: Millis,
}

impl RestartBackoff {
    const MOST: u32 = 6;
    const WINDOW: Millis = Millis(600_000);
    const PAUSE: Millis = Millis(1_000);

    /// When to return after going down now; never, if that was too often.
    pub fn next(&mut self, now: Millis) -> Option<Millis> {
        if self.count == 0 || now.since(self.since) >= Self::WINDOW {
            *self = Self { count: 0, since: now };
        }
        let pause = Millis(Self::PAUSE.0 << self.count.min(Self::MOST));
        (self.count < Self::MOST).then(|| {
            self.count += 1;
            now.plus(pause)
        })
    }
}

/// Deaths of the process while one content was on its way up.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CrashCounter {
    count: u32,
    of: Digest,
}

impl CrashCounter {
    const MOST: u32 = 2;

    /// One more, of this content. Those of another content no longer count.
    pub fn and(self, of: Digest) -> Self {
        Self { count: if of == self.of { self.count + 1 } else { 1 }, of }
    }

    /// Whether there was any.
    pub fn any(self) -> bool {
        self.count > 0
    }

    /// Why this content is to stay down, if it is.
    pub fn verdict(self, of: Digest) -> Option<Fault> {
        let message = format!("the process died {} times in a row while it was starting", self.count);
        let fatal = self.count >= Self::MOST && self.of == of;
        fatal.then(|| Fault::new(Code::ExtensionQuarantined, message))
    }
}
