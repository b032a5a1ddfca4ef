//! Time from outside. The kernel only ever sees it as the moment of an input.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use holdfast_bus::Clock;
use holdfast_contract::ids::Millis;
use holdfast_contract::wire::Later;

/// The machine's own clock.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
    }

    fn sleep(&self, span: Millis) -> Later<()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(span.0)))
    }
}
