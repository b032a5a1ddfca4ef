//! Time and random numbers, which the caller of the bus provides, so that tests can control them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_contract::ids::Millis;
use holdfast_contract::wire::Later;

/// A difference between the machine's clock and the steady one that is taken for a change of the clock.
const MIN_JUMP: u64 = 1_000;

/// A source of time.
pub trait Clock: Send + Sync {
    /// The current time of the machine's clock, which a person or a time server may set at any moment.
    fn now(&self) -> Millis;

    /// The time that has passed since some moment. It only goes forward, and nobody can set it.
    fn steady(&self) -> Millis;

    /// Waits.
    fn sleep(&self, span: Millis) -> Later<()>;
}

/// The machine's time at some moment, continued by the steady clock. What is measured with it does not change when the machine's clock
/// is set.
pub struct SteadyTime {
    clock: Arc<dyn Clock>,
    /// What the machine's clock was ahead of the steady one.
    offset: AtomicU64,
}

impl SteadyTime {
    /// Begins with the machine's time.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let time = Self { clock, offset: AtomicU64::new(0) };
        time.anchor();
        time
    }

    /// Takes over the machine's time.
    pub fn anchor(&self) {
        let offset = self.clock.now().0.wrapping_sub(self.clock.steady().0);
        self.offset.store(offset, Ordering::Relaxed);
    }

    /// The current time.
    pub fn now(&self) -> Millis {
        Millis(self.clock.steady().0.wrapping_add(self.offset.load(Ordering::Relaxed)))
    }

    /// By how much the machine's clock was set, forward or back, since its time was taken over. Takes it over if so.
    pub(crate) fn take_jump(&self) -> Option<i64> {
        let (expected, now) = (self.now().0, self.clock.now().0);
        if now.abs_diff(expected) < MIN_JUMP {
            return None;
        }
        self.anchor();
        Some(now.wrapping_sub(expected) as i64)
    }
}

/// The same moment after the clock was set by so much.
pub(crate) fn moved(at: Millis, jump: i64) -> Millis {
    Millis(at.0.saturating_add_signed(jump))
}

/// A source of random bytes. What follows from them is recorded: a retry's frame contains its time.
pub trait Entropy: Send + Sync {
    /// So many bytes.
    fn draw(&self, count: u32) -> Vec<u8>;

    /// So many bytes, in hexadecimal digits.
    fn draw_hex(&self, count: u32) -> String {
        self.draw(count).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
