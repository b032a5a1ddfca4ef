//! Schedules are created, fire once, survive a restart, and are removed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use holdfast_contract::content::Content;
use holdfast_contract::host_call::{CallRecord, HostCall};
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::message::{Origin, TurnContext};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::system_frames::LifecycleCommand;
use holdfast_contract::wire::{Call, Host, Instance, Lane, Later, Reply};
use holdfast_lane_native::NativeLane;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::store::{Action, Entry, ScheduleStore};

/// After this a test gives up. It only has to be longer than the slowest machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A host whose clock stands still until a test advances it; every interval is 100.
#[derive(Default)]
struct Outside {
    time: watch::Sender<u64>,
    asked: watch::Sender<Vec<(String, Value)>>,
    /// The error of publishing, while it fails.
    trouble: Mutex<Option<Code>>,
}

#[derive(Clone, Default)]
struct Fake(Arc<Outside>);

impl Host for Fake {
    fn call_within(&self, call: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        let CallRecord { name, arguments, .. } = call.record();
        let (outside, arguments) = (self.0.clone(), arguments.value().clone());
        Box::pin(async move {
            match name.as_str() {
                "schedule.next" if arguments["when"] == "never" => Err(Fault::new(Code::ScheduleCron, "no")),
                "schedule.next" => Ok(json!({ "next": *outside.time.borrow() + 100 }).into()),
                "schedule.wait" => {
                    let until = arguments["until"].as_u64().unwrap();
                    outside.time.subscribe().wait_for(|time| *time >= until).await.unwrap();
                    Ok(Content::default())
                }
                _ => {
                    outside.asked.send_modify(|asked| asked.push((name, arguments)));
                    match *outside.trouble.lock().unwrap() {
                        Some(code) => Err(Fault::new(code, "not now")),
                        None => Ok(Content::default()),
                    }
                }
            }
        })
    }
}

impl Fake {
    fn move_to(&self, time: u64) {
        self.0.time.send_replace(time);
    }

    /// What the host was asked for, once this holds of it.
    async fn asked_until(&self, holds: impl Fn(&[(String, Value)]) -> bool) -> Vec<(String, Value)> {
        let mut asked = self.0.asked.subscribe();
        let asked = tokio::time::timeout(TIMEOUT, asked.wait_for(|asked| holds(asked))).await;
        asked.expect("it was not asked in time").unwrap().clone()
    }

    async fn asked(&self, count: usize) -> Vec<(String, Value)> {
        self.asked_until(|asked| asked.len() >= count).await
    }

    /// All that was asked before a reminder that is due a hundred later than now. What is due is fired in order, one after another, so
    /// nothing that was due before can still happen.
    async fn asked_before_barrier(&self, extension: &Arc<dyn Instance>) -> Vec<(String, Value)> {
        tool(extension, self, "schedule_once", json!({ "in": "2h", "text": "barrier" })).await.unwrap();
        let now = *self.0.time.borrow();
        self.move_to(now + 100);
        let is_barrier = |(_, asked): &(String, Value)| asked["payload"]["text"] == "barrier";
        let mut asked = self.asked_until(|asked| asked.iter().any(is_barrier)).await;
        asked.retain(|one| !is_barrier(one));
        asked
    }
}

async fn started(folder: &Path, host: &Fake) -> Arc<dyn Instance> {
    let lane = NativeLane::default();
    let found = lane.add(crate::extension(folder.to_owned()));
    let extension = lane.load(&found.activation(1)).await.unwrap();
    for command in [LifecycleCommand::Initialize, LifecycleCommand::Start] {
        extension.call(Call::Lifecycle(command), Arc::new(host.clone())).await.unwrap();
    }
    extension
}

/// The host calls of a firing.
fn published(topic: &str, payload: Value, key: &str) -> (String, Value) {
    let event = json!({ "topic": topic, "payload": payload, "idempotency": format!("scheduler/{key}") });
    ("event.publish".to_owned(), event)
}

async fn tool(
    extension: &Arc<dyn Instance>,
    host: &Fake,
    name: &str,
    arguments: Value,
) -> Result<Value, Fault> {
    let turn = TurnContext {
        session: "s".into(),
        turn: 1,
        agent: "main".into(),
        origin: Origin { channel: "test".to_owned(), user: None },
        ..TurnContext::default()
    };
    let call = Call::Tool {
        call: CallId { turn: 1, index: 1 },
        tool: name.into(),
        arguments: arguments.into(),
        turn: Arc::new(turn),
    };
    match extension.call(call, Arc::new(host.clone())).await? {
        Reply::Content(content) => Ok(content.value().clone()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_reminder_fires_once_and_a_recurring_schedule_again() {
    let (folder, host) = (tempfile::tempdir().unwrap(), Fake::default());
    let it = started(folder.path(), &host).await;
    let once = json!({ "in": "2h", "text": "call mum" });
    assert_eq!(
        tool(&it, &host, "schedule_once", once).await.unwrap(),
        json!({ "id": "s1", "next": "1970-01-01T00:00:00.1Z" })
    );
    let again = json!({ "interval": "100", "topic": "tick", "payload": { "n": 1 } });
    tool(&it, &host, "schedule_recurring", again).await.unwrap();
    host.move_to(100);
    let asked = host.asked(2).await;
    assert_eq!(asked.len(), 2, "{asked:?}");
    // Where the channel knows no users, the text goes to the session that asked for it.
    let text = json!({ "text": "call mum", "session": "s" });
    assert_eq!(asked[0], published("system.user.notify", text, "s1@100"));
    assert_eq!(asked[1].1["idempotency"], "scheduler/s2@100");
    host.move_to(200);
    assert_eq!(host.asked(3).await[2].1["idempotency"], "scheduler/s2@200");
    let listed = tool(&it, &host, "list_schedules", json!({})).await.unwrap();
    assert_eq!(listed["schedules"][0]["fired"], json!(["1970-01-01T00:00:00.1Z", "done"]));
    assert_eq!(listed["schedules"][0]["next"], Value::Null);
    tool(&it, &host, "cancel_schedule", json!({ "id": "s2" })).await.unwrap();
    assert_eq!(host.asked_before_barrier(&it).await.len(), 3);
    assert!(tool(&it, &host, "cancel_schedule", json!({ "id": "s2" })).await.is_err());
}

#[tokio::test]
async fn a_missed_schedule_fires_once_after_a_restart() {
    let (folder, host) = (tempfile::tempdir().unwrap(), Fake::default());
    let it = started(folder.path(), &host).await;
    tool(&it, &host, "schedule_recurring", json!({ "cron": "* * * * *", "task": "tidy up" })).await.unwrap();
    it.call(Call::Lifecycle(LifecycleCommand::Stop), Arc::new(host.clone())).await.unwrap();
    host.move_to(1_050);
    let it = started(folder.path(), &host).await;
    let task = |key| published("system.agent.task", json!({ "prompt": "tidy up" }), key);
    assert_eq!(host.asked(1).await, [task("s1@100")]);
    assert_eq!(host.asked_before_barrier(&it).await, [task("s1@100"), task("s1@1150")]);
}

#[tokio::test]
async fn an_interrupted_firing_is_published_under_its_idempotency_key() {
    let (folder, host) = (tempfile::tempdir().unwrap(), Fake::default());
    let store = ScheduleStore::new(folder.path().to_owned());
    for action in
        [Action::Text("hello".to_owned()), Action::Event { topic: "t".to_owned(), payload: Value::Null }]
    {
        let entry = Entry {
            when: None,
            timezone: None,
            action,
            asked_in: None,
            next: None,
            firing: Some(7),
            fired: None,
        };
        store.add(entry).unwrap();
    }
    let it = started(folder.path(), &host).await;
    let both = [
        published("system.user.notify", json!({ "text": "hello" }), "s1@7"),
        published("t", Value::Null, "s2@7"),
    ];
    assert_eq!(host.asked_before_barrier(&it).await, both);
    let listed = tool(&it, &host, "list_schedules", json!({})).await.unwrap();
    assert_eq!(listed["schedules"][0]["fired"], json!(["1970-01-01T00:00:00.007Z", "done"]));
}

#[tokio::test]
async fn publishing_is_retried_after_a_passing_error_and_fails_after_another() {
    let (folder, host) = (tempfile::tempdir().unwrap(), Fake::default());
    let it = started(folder.path(), &host).await;
    for (code, outcome) in [(Code::StoreFull, "done"), (Code::EventRefused, "failed: not now")] {
        let before = host.0.asked.borrow().len();
        *host.0.trouble.lock().unwrap() = Some(code);
        let now = *host.0.time.borrow();
        tool(&it, &host, "schedule_once", json!({ "in": "2h", "text": "x" })).await.unwrap();
        host.move_to(now + 100);
        host.asked(before + 1).await;
        *host.0.trouble.lock().unwrap() = None;
        host.move_to(now + 200);
        let last = || async {
            let listed = tool(&it, &host, "list_schedules", json!({})).await.unwrap();
            listed["schedules"].as_array().unwrap().last().unwrap()["fired"].clone()
        };
        let deadline = Instant::now() + TIMEOUT;
        while !last().await.is_array() {
            assert!(Instant::now() < deadline, "it was not fired");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(last().await, json!([crate::moment(now + 100), outcome]));
    }
    let mut keys: Vec<Value> =
        host.asked_before_barrier(&it).await.iter().map(|(_, asked)| asked["idempotency"].clone()).collect();
    // A schedule that was changed meanwhile is a reason to try at once, so that there may be one attempt more.
    assert!(keys.iter().filter(|key| **key == "scheduler/s1@100").count() >= 2, "{keys:?}");
    keys.dedup();
    assert_eq!(keys, ["scheduler/s1@100", "scheduler/s2@300"]);
}

#[tokio::test]
async fn invalid_arguments_are_refused() {
    let (folder, host) = (tempfile::tempdir().unwrap(), Fake::default());
    let it = started(folder.path(), &host).await;
    for (name, arguments) in [
        ("schedule_once", json!({ "text": "when?" })),
        ("schedule_once", json!({ "at": "never", "text": "x" })),
        ("schedule_once", json!({ "cron": "* * * * *", "text": "x" })),
        ("schedule_once", json!({ "in": "2h" })),
        ("schedule_recurring", json!({ "cron": "* * * * *", "text": "x", "task": "y" })),
        ("update_schedule", json!({ "id": "s9", "text": "x" })),
    ] {
        assert!(tool(&it, &host, name, arguments.clone()).await.is_err(), "{name} {arguments}");
    }
    tool(&it, &host, "schedule_once", json!({ "in": "2h", "text": "x" })).await.unwrap();
    tool(&it, &host, "update_schedule", json!({ "id": "s1", "text": "y" })).await.unwrap();
    host.move_to(100);
    assert_eq!(host.asked(1).await[0].1["payload"]["text"], "y");
}

// Finding M9: a flood by schedules.
#[tokio::test]
async fn schedules_that_are_due_all_the_time_are_paced() {
    let (folder, host) = (tempfile::tempdir().unwrap(), Fake::default());
    let it = started(folder.path(), &host).await;
    for _ in 0..130 {
        tool(&it, &host, "schedule_recurring", json!({ "interval": "100", "topic": "tick" })).await.unwrap();
    }
    host.move_to(100);
    host.asked(120).await;
    // The other ten wait, and miss what they would have been due at meanwhile.
    host.move_to(200);
    host.asked(240).await;
    host.move_to(300);
    let of = |due: u64, asked: &[(String, Value)]| {
        let end = format!("@{due}");
        asked.iter().filter(|(_, event)| event["idempotency"].as_str().unwrap().ends_with(&end)).count()
    };
    let asked = host.asked_until(|asked| of(300, asked) > 0).await;
    assert_eq!((of(100, &asked), of(200, &asked)), (130, 120));
}

// Finding M9: a file that would be too large to be read again.
#[tokio::test]
async fn schedules_that_are_too_large_are_refused() {
    let (folder, host) = (tempfile::tempdir().unwrap(), Fake::default());
    let it = started(folder.path(), &host).await;
    let large = json!({ "in": "2h", "text": "x".repeat(9 << 20) });
    tool(&it, &host, "schedule_once", large.clone()).await.unwrap();
    let fault = tool(&it, &host, "schedule_once", large).await.unwrap_err();
    assert!(fault.message.contains("cancel some"), "{fault}");
    let again = started(folder.path(), &host).await;
    let listed = tool(&again, &host, "list_schedules", json!({})).await.unwrap();
    assert_eq!(listed["schedules"].as_array().unwrap().len(), 1);
}
