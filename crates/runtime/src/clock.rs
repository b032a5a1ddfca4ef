//! Time from outside. The kernel only ever sees it as the moment of an input.

use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use holdfast_bus::Clock;
pub(crate) use holdfast_bus::SteadyTime;
use holdfast_contract::ids::Millis;
use holdfast_contract::wire::Later;

/// The moment from which the steady time of this process counts.
static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The machine's own clock.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
    }

    fn steady(&self) -> Millis {
        Millis(u64::try_from(BEGUN.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn sleep(&self, span: Millis) -> Later<()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(span.0)))
    }
}
