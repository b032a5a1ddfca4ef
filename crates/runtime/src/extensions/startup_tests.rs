//! How long somebody waits for an extension that is starting, with and without a preparation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::log::Progress;
use holdfast_contract::wire::Later;
use holdfast_kernel::ExpectedExtension;

use super::startup::{Preparations, START_LIMIT, StartWait, Startup};
use crate::clock::Clock;

/// A clock whose time passes while somebody sleeps.
#[derive(Default)]
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn now(&self) -> Millis {
        self.steady()
    }

    fn steady(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }

    fn sleep(&self, span: Millis) -> Later<()> {
        self.0.fetch_add(span.0, Ordering::SeqCst);
        Box::pin(std::future::ready(()))
    }
}

struct Scene {
    clock: Arc<SetClock>,
    preparations: Arc<Preparations>,
    startup: Arc<Startup>,
    id: ExtensionId,
}

impl Scene {
    fn new() -> Self {
        let clock = Arc::new(SetClock::default());
        let preparations = Arc::new(Preparations::new(clock.clone()));
        let startup = Arc::new(Startup::new(Some(preparations.clone())));
        startup.discovered();
        let scene = Self { clock, preparations, startup, id: "mountains".into() };
        scene.expect([scene.id.clone()]);
        scene
    }

    fn expect<const N: usize>(&self, ids: [ExtensionId; N]) {
        let expected = |id| ExpectedExtension { id, contents: Vec::new(), restarting: false, patient: false };
        self.startup.update(ids.into_iter().map(expected), self.clock.steady());
    }

    fn at(&self, millis: u64) -> &Self {
        self.clock.0.store(millis, Ordering::SeqCst);
        self
    }

    /// Until when somebody waits who begins now and sees no change.
    async fn waits(&self, wait: StartWait) -> u64 {
        let begun = self.clock.steady();
        self.startup.ready(wait, &*self.clock).await;
        let until = self.clock.steady();
        self.at(begun.0);
        until.0
    }

    fn installs(&self) {
        self.preparations.report(&self.id, &Progress::Installing { packages: vec!["a".to_owned()] });
    }

    fn has_installed(&self) {
        self.preparations.report(&self.id, &Progress::Installed { millis: 1 });
    }
}

#[tokio::test]
async fn an_extension_that_is_not_prepared_has_the_limit_of_a_start() {
    let scene = Scene::new();
    for wait in [StartWait::Start, StartWait::Preparation] {
        assert_eq!(scene.at(4_000).waits(wait).await, START_LIMIT.0);
        assert_eq!(scene.at(60_000).waits(wait).await, 60_000, "it takes too long");
    }
}

#[tokio::test]
async fn a_turn_does_not_wait_longer_for_an_installation() {
    let scene = Scene::new();
    scene.installs();
    assert_eq!(scene.at(4_000).waits(StartWait::Start).await, START_LIMIT.0);
    assert_eq!(scene.at(60_000).waits(StartWait::Start).await, 60_000);
}

#[tokio::test]
async fn the_start_after_an_installation_has_the_whole_limit() {
    let scene = Scene::new();
    scene.installs();
    scene.at(60_000).has_installed();
    for wait in [StartWait::Start, StartWait::Preparation] {
        assert_eq!(scene.at(61_000).waits(wait).await, 60_000 + START_LIMIT.0);
        assert_eq!(scene.at(80_000).waits(wait).await, 80_000);
    }
}

#[tokio::test]
async fn a_command_waits_until_an_installation_has_ended() {
    let scene = Scene::new();
    scene.installs();
    let (startup, clock) = (scene.startup.clone(), Arc::new(StoppedClock(60_000)));
    let waits = tokio::spawn(async move { startup.ready(StartWait::Preparation, &*clock).await });
    tokio::task::yield_now().await;
    assert!(!waits.is_finished(), "it is being installed");
    // It has failed, or is active.
    scene.expect([]);
    waits.await.ok();
    // The end of a failed installation was not reported. At the next start it counts no more.
    scene.at(100_000).expect([scene.id.clone()]);
    assert_eq!(scene.waits(StartWait::Preparation).await, 100_000 + START_LIMIT.0);
}

/// A clock whose time does not pass.
struct StoppedClock(u64);

impl Clock for StoppedClock {
    fn now(&self) -> Millis {
        self.steady()
    }

    fn steady(&self) -> Millis {
        Millis(self.0)
    }

    fn sleep(&self, _: Millis) -> Later<()> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_turn_waits_a_short_time_for_an_extension_that_is_about_to_be_restarted() {
    let scene = Scene::new();
    scene.at(100_000);
    let restarting =
        ExpectedExtension { id: scene.id.clone(), contents: Vec::new(), restarting: true, patient: false };
    scene.startup.update([restarting].into_iter(), scene.clock.steady());
    assert_eq!(scene.waits(StartWait::Start).await, 103_000);
    assert_eq!(scene.at(104_000).waits(StartWait::Start).await, 104_000, "it is known to be down");
}

#[tokio::test]
async fn no_turn_waits_for_what_is_patient_but_a_command_does_that_ends_the_process() {
    let scene = Scene::new();
    scene.at(100_000).expect([]);
    let patient =
        ExpectedExtension { id: scene.id.clone(), contents: Vec::new(), restarting: false, patient: true };
    scene.startup.update([patient].into_iter(), scene.clock.steady());
    assert_eq!(scene.waits(StartWait::Start).await, 100_000);
    assert!(!scene.startup.holds_turns(scene.clock.steady()));
    assert_eq!(scene.waits(StartWait::Preparation).await, 100_000 + START_LIMIT.0);
}
