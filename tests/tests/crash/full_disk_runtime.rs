//! A disk that runs full under the whole runtime: the session stops with one clear error, what others were told stays true, nothing is
//! half-written; and once there is space again the session is taken up, finishes its turn, and repeats no effect.
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::examine::{honest, ran_once, read, replays};
use crate::ledger::{DiskLedger, Noted, Outside};
use crate::life::{start, take_up, tell};
use crate::world::World;
use fail::FailScenario;
use holdfast_contract::body::FrameKind;
use holdfast_contract::ids::StreamId;
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::tool::EffectClass;
use holdfast_runtime::{Runtime, SessionHandle, TurnReport};
use holdfast_store::{Store, StoreOptions};
use holdfast_testkit::FakeClock;
use holdfast_testkit::disk::{DiskFault, SimulatedDisk, Survival};

const LONG_TURN: &str = "do: look write; mystery run; clerk; send";

/// A runtime on a simulated disk.
struct Place {
    disk: SimulatedDisk,
    ledger: Arc<DiskLedger>,
    runtime: Runtime,
}

fn open(disk: &SimulatedDisk) -> Store {
    let options = StoreOptions { vfs: Some(disk.vfs_name().to_owned()), ..StoreOptions::default() };
    Store::open(Path::new("holdfast.db"), options).unwrap()
}

impl Place {
    async fn new() -> Self {
        let disk = SimulatedDisk::new();
        let ledger = Arc::new(DiskLedger::of(&disk));
        let world = World::new(ledger.clone());
        let runtime = start(&world, open(&disk), Arc::new(FakeClock::default())).await.unwrap();
        Self { disk, ledger, runtime }
    }

    fn session(&self, id: &str) -> SessionHandle {
        take_up(&self.runtime, &id.into()).unwrap()
    }

    /// Says something, and is answered within reason.
    async fn say(&self, session: &SessionHandle, prompt: &str) -> Result<TurnReport, Problem> {
        let said = tokio::time::timeout(Duration::from_secs(60), session.say("test", prompt));
        let report = said.await.expect("an answer or an error")?;
        tell(&*self.ledger as &dyn Outside, session.id(), &report, prompt);
        Ok(report)
    }

    /// The system stream has caught up as well: it knows of every turn's end that a user was told of.
    fn every_turn_is_anchored(&self) {
        let store = self.runtime.store();
        store.flush().unwrap();
        let frames = store.frames(&StreamId::system(), ..).unwrap();
        let anchored = frames.iter().filter(|frame| frame.envelope.kind == FrameKind::HeadAnchored).count();
        let happened = self.ledger.until(self.disk.step());
        let told = happened
            .iter()
            .filter(|noted| matches!(noted, Noted::Told { kind: FrameKind::TurnEnded, .. }))
            .count();
        assert!(anchored >= told, "{anchored} anchors for {told} turns");
    }

    /// What is in the log is what anybody was told of, and all of it verifies.
    fn holds(&self) {
        read(self.runtime.store(), None, honest)
            .unwrap()
            .bears_out(&self.ledger.until(self.disk.step()))
            .unwrap();
    }
}

/// Takes a session up again after there is space, and lets it end the turn that was under way, or begin it if it never was.
async fn goes_on(place: &Place, id: &str, prompt: &str) {
    let session = place.session(id);
    match session.running_turn().await {
        Ok(report) => tell(&*place.ledger as &dyn Outside, &StreamId::from(id), &report, prompt),
        Err(problem) => {
            assert_eq!(problem.code, Code::TurnUnexpected, "{problem}");
            place.say(&session, prompt).await.unwrap();
        }
    }
}

/// Follows a runtime onto a full disk and off again. Tells whether the turn met the end of the space at all.
async fn survives_a_full_disk(fill: impl FnOnce(&SimulatedDisk)) -> bool {
    let place = Place::new().await;
    let (quiet, busy) = (place.session("quiet"), place.session("busy"));
    place.say(&quiet, "do: write").await.unwrap();
    place.say(&busy, "hello").await.unwrap();
    place.runtime.settled().await.unwrap();

    fill(&place.disk);
    let Err(problem) = place.say(&busy, LONG_TURN).await else { return false };
    assert_eq!(problem.code, Code::StoreFull, "{problem}");
    let full = place.disk.step();
    let problem = place.say(&busy, "are you there?").await.unwrap_err();
    assert_eq!(problem.code, Code::StoreFull, "{problem}");
    let problem = place.say(&quiet, "hello").await.unwrap_err();
    assert_eq!(problem.code, Code::StoreFull, "{problem}");
    place.holds();

    place.disk.heal();
    goes_on(&place, "busy", LONG_TURN).await;
    goes_on(&place, "quiet", "hello").await;
    let busy = place.session("busy");
    place.say(&busy, "do: write").await.unwrap();
    place.holds();
    ran_once(&place.ledger.until(place.disk.step())).unwrap();
    place.runtime.settled().await.unwrap();
    place.every_turn_is_anchored();
    place.runtime.stop("the test is over").await.unwrap();
    replays(place.runtime.store(), EffectClass::default()).unwrap();

    for step in full.saturating_sub(3)..full + 3 {
        for survival in [Survival::NothingUnsynced, Survival::Everything, Survival::Random(step as u64)] {
            let store = open(&place.disk.crash_at(step, survival));
            read(&store, None, honest).unwrap().bears_out(&place.ledger.until(step)).unwrap();
        }
    }
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_without_room_to_grow() {
    let _failpoints = FailScenario::setup();
    assert!(survives_a_full_disk(|disk| disk.set_quota(Some(disk.used() + 20_000))).await);
}

/// From the first write of the turn to its last: the space ends at every place in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_is_full_anywhere_in_a_turn() {
    let _failpoints = FailScenario::setup();
    let mut met = 0;
    for writes in (0..).step_by(7) {
        if !survives_a_full_disk(|disk| disk.fail_after(writes, DiskFault::FullDisk)).await {
            break;
        }
        met += 1;
    }
    assert!(met >= 5, "the turn met a full disk only {met} times");
}
