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
    sleepers: Vec<(Millis, oneshot::Sender<()>)>,
}

impl Default for FakeClock {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Face { now: EPOCH, sleepers: Vec::new() })))
    }
}

impl FakeClock {
    /// Moves time forward and wakes whoever's time has come, earliest first.
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

    /// How many are asleep.
    pub fn sleepers(&self) -> usize {
        self.0.lock().unwrap().sleepers.iter().filter(|(_, wake)| !wake.is_closed()).count()
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Millis {
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
