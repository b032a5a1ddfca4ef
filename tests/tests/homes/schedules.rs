//! Schedules in a running system: extensions' tasks come due by the clock, are tried again, and tell the user.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::ids::Millis;
use holdfast_contract::manifest;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::system_frames::ScheduleSpec;
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{NativeExtension, Tasks, now};
use holdfast_loader::candidate;
use holdfast_testkit::story::bodies;
use holdfast_testkit::{FakeClock, Lab};
use serde_json::{Value, json};

const HOUR: u64 = 3_600_000;

/// As the extension guide has it.
const SCHEDULES: &str = r#"
id: memory
name: Memory
schedules:
  - name: nightly_consolidation
    cron: "0 3 * * *"
    task: execute_consolidation   # optional; if empty, uses name
  - name: daily_decay
    cron: "0 4 * * *"
    task: execute_decay
"#;

/// Fails so many times, and then says what it did.
#[derive(Clone, Default)]
struct Chores {
    failures: Arc<AtomicU32>,
}

impl Tasks for Chores {
    fn execute_task(&self, task: String, _: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        let left = self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        now(match left {
            Ok(_) => Err(Fault::new(Code::ExtensionFault, "the disk is full")),
            Err(_) => Ok(json!({ "text": format!("{task} is done") }).into()),
        })
    }
}

fn memory(chores: Chores) -> NativeExtension {
    let parsed = manifest::parse(Path::new("manifest.yaml"), SCHEDULES).unwrap();
    let specs = parsed.manifest.schedules.iter().map(ScheduleSpec::from);
    specs.fold(NativeExtension::new("memory", "1.0.0").tasks(chores), NativeExtension::schedule)
}

/// What the system's stream says of schedules, one line each.
fn course(lab: &Lab) -> Vec<String> {
    let frames = lab.frames_of("system");
    let frames = frames.iter().filter(|frame| frame.envelope.kind.as_str().starts_with("schedule."));
    frames
        .map(|frame| {
            let body = frame.body.clone().unwrap_or_default();
            let mut line = format!("{} {}", frame.envelope.kind, body["schedule"].as_str().unwrap());
            for field in ["passed", "reason"] {
                line.extend(body[field].as_str().map(|text| format!(": {text}")));
            }
            line.extend(body["retry"]["attempt"].as_u64().map(|attempt| format!(" #{attempt}")));
            line.extend(body["fault"]["message"].as_str().map(|text| format!(" ({text})")));
            line
        })
        .collect()
}

async fn ended(lab: &Lab, count: usize) {
    let reached = |lab: &Lab| bodies(&lab.frames_of("system"), FrameKind::ScheduleEnded).len() >= count;
    lab.until("the end of a run", reached).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_run_at_their_hours_and_tell_the_user() {
    let lab = Lab::build().shows_notices().extension(memory(Chores::default())).start().await;
    // The clock begins at 22:13:20 in UTC.
    lab.pass(Millis(5 * HOUR), 1).await;
    ended(&lab, 1).await;
    lab.pass(Millis(HOUR), 1).await;
    ended(&lab, 2).await;
    assert_eq!(
        lab.ledger.lines().iter().filter(|line| line.starts_with("task")).collect::<Vec<_>>(),
        ["task memory execute_consolidation", "task memory execute_decay"]
    );
    lab.until("both notices", |lab| lab.notices().len() == 2).await;
    assert_eq!(lab.notices(), ["execute_consolidation is done", "execute_decay is done"]);
    assert_eq!(
        course(&lab)[4..],
        [
            "schedule.due memory/nightly_consolidation",
            "schedule.fired memory/nightly_consolidation",
            "schedule.ended memory/nightly_consolidation",
            "schedule.due memory/daily_decay",
            "schedule.fired memory/daily_decay",
            "schedule.ended memory/daily_decay",
        ]
    );
    assert!(lab.findings().is_empty(), "{:?}", lab.findings());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_task_is_tried_again_with_growing_waits() {
    let chores = Chores { failures: Arc::new(AtomicU32::new(2)) };
    let lab = Lab::build().shows_notices().extension(memory(chores)).start().await;
    lab.pass(Millis(5 * HOUR), 1).await;
    ended(&lab, 1).await;
    assert_eq!(lab.ledger.count("task"), 1);
    // The waits are at most 10 and 20 seconds.
    lab.pass(Millis(10_000), 1).await;
    ended(&lab, 2).await;
    lab.pass(Millis(20_000), 1).await;
    ended(&lab, 3).await;
    assert_eq!(
        course(&lab)[4..],
        [
            "schedule.due memory/nightly_consolidation",
            "schedule.fired memory/nightly_consolidation",
            "schedule.ended memory/nightly_consolidation (the disk is full)",
            "schedule.due memory/nightly_consolidation #2",
            "schedule.fired memory/nightly_consolidation",
            "schedule.ended memory/nightly_consolidation (the disk is full)",
            "schedule.due memory/nightly_consolidation #3",
            "schedule.fired memory/nightly_consolidation",
            "schedule.ended memory/nightly_consolidation",
        ]
    );
    let due = bodies(&lab.frames_of("system"), FrameKind::ScheduleDue);
    assert_eq!(due.last().unwrap()["retry"], json!({ "attempt": 3, "jitter": 0x0001_0203 }));
    lab.until("the notice", |lab| !lab.notices().is_empty()).await;
    assert_eq!(lab.notices(), ["execute_consolidation is done"]);
}

// Finding D12, for schedules.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_put_back_stalls_neither_an_attempt_nor_a_schedule() {
    let chores = Chores { failures: Arc::new(AtomicU32::new(1)) };
    let lab = Lab::build().shows_notices().extension(memory(chores)).start().await;
    lab.pass(Millis(5 * HOUR), 1).await;
    ended(&lab, 1).await;
    lab.clock.set(-25 * HOUR as i64);
    lab.pass(Millis(10_000), 1).await;
    ended(&lab, 2).await;
    // It is 2:13:30 of the day before, and the night's run of that day is still to come.
    lab.pass(Millis(HOUR), 1).await;
    ended(&lab, 3).await;
    assert_eq!(
        course(&lab)[4..],
        [
            "schedule.due memory/nightly_consolidation",
            "schedule.fired memory/nightly_consolidation",
            "schedule.ended memory/nightly_consolidation (the disk is full)",
            "schedule.due memory/daily_decay: the clock was put back; the next run is computed from now",
            "schedule.skipped memory/daily_decay: the clock was put back; the next run is computed from now",
            "schedule.due memory/nightly_consolidation: the clock was put back; the next run is computed from now",
            "schedule.skipped memory/nightly_consolidation: the clock was put back; the next run is computed from now",
            "schedule.due memory/nightly_consolidation #2",
            "schedule.fired memory/nightly_consolidation",
            "schedule.ended memory/nightly_consolidation",
            "schedule.due memory/nightly_consolidation",
            "schedule.fired memory/nightly_consolidation",
            "schedule.ended memory/nightly_consolidation",
        ]
    );
    let due = bodies(&lab.frames_of("system"), FrameKind::ScheduleDue);
    assert_eq!(due.iter().filter(|due| due["corrected"] == json!(true)).count(), 2);
    lab.until("both notices", |lab| lab.notices().len() == 2).await;
    assert!(lab.findings().is_empty(), "{:?}", lab.findings());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_night_that_was_slept_through_is_made_up_for_once() {
    let clock = FakeClock::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holdfast.db");
    let build = || {
        let lab = Lab::build().on(&path, Default::default()).clock(clock.clone());
        lab.extension(memory(Chores::default()))
    };
    let lab = build().start().await;
    lab.stop().await;
    clock.advance(Millis(60 * HOUR));
    let lab = build().start().await;
    ended(&lab, 2).await;
    let made = bodies(&lab.frames_of("system"), FrameKind::ScheduleFired);
    assert_eq!(made.len(), 2, "{made:?}");
    assert_eq!(
        made.iter().map(|made| &made["task"]).collect::<Vec<_>>(),
        ["execute_decay", "execute_consolidation"]
    );
    let passed: Vec<Value> = bodies(&lab.frames_of("system"), FrameKind::ScheduleSkipped);
    let passed = passed.iter().filter(|passed| passed["reason"] == "a later run makes up for it (2 runs)");
    assert_eq!(passed.count(), 2, "the two earlier nights of each");
    lab.stop().await;
    let lab = build().start().await;
    assert_eq!(bodies(&lab.frames_of("system"), FrameKind::ScheduleFired).len(), 2, "and not again");
}

#[test]
fn a_cron_that_cannot_be_read_is_refused_with_its_place_and_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let extension = folder.path().join("memory");
    std::fs::create_dir(&extension).unwrap();
    std::fs::write(extension.join("manifest.yaml"), SCHEDULES.replace("0 4 * * *", "0 4 * *")).unwrap();
    let policy = holdfast_policy::Policy::profile(manifest::Profile::Standard);
    let problem = match candidate(&extension, &policy, None, Default::default()) {
        Ok(_) => panic!("it was read"),
        Err(problem) => problem,
    };
    assert_eq!(problem.code, Code::ScheduleCron);
    let place = problem.location.clone().unwrap();
    assert_eq!((place.line, place.field.as_deref()), (9, Some("schedules[1].cron")));
    assert!(problem.help.contains("0 3 * * *"), "{problem}");
}
