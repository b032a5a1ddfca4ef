//! Time and random numbers, which the caller of the bus provides, so that tests can control them.

use holdfast_contract::ids::Millis;
use holdfast_contract::wire::Later;

/// A source of time.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Millis;

    /// Waits.
    fn sleep(&self, span: Millis) -> Later<()>;
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
