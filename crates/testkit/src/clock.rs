//! A clock that stands still until a test moves it.

use std::sync::{Arc, Mutex};

use holdfast_contract::ids::Millis;
use holdfast_contract::wire::Later;
use holdfast_runtime::Clock;
use tokio::sync::oneshot;

/// The moment at which every fake clock begins.
pub const EPOCH: Millis = Millis(1_700_000_000_000);

/// A clock under a test's control.
#[derive(Clone)]
pub struct FakeClock(Arc<Mutex<Face>>);

struct Face {
    now: Millis,
    /// By how much the machine's clock was set.
    set: i64,
    sleepers: Vec<(Millis, oneshot::Sender<()>)>,
}

impl Default for FakeClock {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Face { now: EPOCH, set: 0, sleepers: Vec::new() })))
    }
}

impl FakeClock {
    /// Moves time forward and wakes those whose time has come, earliest first.
    pub fn advance(&self, span: Millis) {
        let mut face = self.0.lock().unwrap();
        face.now = face.now.plus(span);
        let now = face.now;
        face.sleepers.sort_by_key(|(at, _)| *at);
        let late = face.sleepers.partition_point(|(at, _)| *at <= now);
        for (_, wake) in face.sleepers.drain(..late) {
            let _dropped = wake.send(());
        }
    }

    /// Sets the machine's clock forward or back. No time passes.
    pub fn set(&self, by: i64) {
        self.0.lock().unwrap().set += by;
    }

    /// How many are asleep.
    pub fn sleepers(&self) -> usize {
        self.0.lock().unwrap().sleepers.iter().filter(|(_, wake)| !wake.is_closed()).count()
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Millis {
        let face = self.0.lock().unwrap();
        Millis(face.now.0.saturating_add_signed(face.set))
    }

    fn steady(&self) -> Millis {
        self.0.lock().unwrap().now
    }

    fn sleep(&self, span: Millis) -> Later<()> {
        let (wake, woken) = oneshot::channel();
        let mut face = self.0.lock().unwrap();
        let at = face.now.plus(span);
        face.sleepers.push((at, wake));
        Box::pin(async move {
            let _dropped = woken.await;
        })
    }
}
