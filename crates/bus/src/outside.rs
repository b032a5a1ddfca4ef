//! What is taken from outside: time and chance, for the bus and for the runtime above it. Tests lend ones that stand still.

use holdfast_contract::ids::Millis;
use holdfast_contract::wire::Later;

/// Where time comes from.
pub trait Clock: Send + Sync {
    /// The moment.
    fn now(&self) -> Millis;

    /// Waits.
    fn sleep(&self, span: Millis) -> Later<()>;
}

/// Where random bytes come from. What they lead to is recorded: a retry's frame has its time.
pub trait Entropy: Send + Sync {
    /// So many bytes.
    fn draw(&self, count: u32) -> Vec<u8>;

    /// So many bytes, in hexadecimal digits.
    fn draw_hex(&self, count: u32) -> String {
        self.draw(count).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
