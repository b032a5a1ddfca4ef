//! What the bus takes from outside: time and chance. The runtime lends its own; tests lend ones that stand still.

use holdfast_contract::ids::Millis;
use holdfast_contract::wire::Later;

/// Where time comes from.
pub trait Clock: Send + Sync {
    /// The moment.
    fn now(&self) -> Millis;

    /// Waits.
    fn sleep(&self, span: Millis) -> Later<()>;
}

/// Where chance comes from. What it leads to is recorded: a retry's frame has its time.
pub trait Entropy: Send + Sync {
    /// So many bytes.
    fn draw(&self, count: u32) -> Vec<u8>;
}
