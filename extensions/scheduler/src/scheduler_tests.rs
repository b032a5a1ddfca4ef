//! Entries that are made, fire once, survive a stop, and go.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop loudly")]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::{CallRecord, HostCall};
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::message::{Origin, TurnContext};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::system_frames::LifecycleCommand;
use holdfast_contract::wire::{Call, Host, Instance, Later, Reply};
use serde_json::{Value, json};

use crate::book::{Action, Book, Entry};

/// A host whose time stands at 1,000 until a test moves it; every interval is a hundred.
#[derive(Default)]
struct Outside {
    time: Mutex<u64>,
    asked: Mutex<Vec<(String, Value)>>,
    /// How nothing can be published, for as long as that is so.
    trouble: Mutex<Option<Code>>,
}

#[derive(Clone, Default)]
struct Fake(Arc<Outside>);

impl Host for Fake {
    fn call_within(&self, call: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        let CallRecord { name, arguments, .. } = call.record();
        let (outside, arguments) = (self.0.clone(), arguments.value().cloned().unwrap_or_default());
        Box::pin(async move {
            match name.as_str() {
                "schedule.next" if arguments["when"] == "never" => Err(Fault::new(Code::ScheduleCron, "no")),
                "schedule.next" => Ok(json!({ "next": *outside.time.lock().unwrap() + 100 }).into()),
                "schedule.wait" => {
                    while *outside.time.lock().unwrap() < arguments["until"].as_u64().unwrap() {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    Ok(Content::default())
                }
                _ => {
                    outside.asked.lock().unwrap().push((name, arguments));
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
        *self.0.time.lock().unwrap() = time;
    }

    async fn asked(&self, count: usize) -> Vec<(String, Value)> {
        for _ in 0..2_000 {
            if self.0.asked.lock().unwrap().len() >= count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // What comes once more than it should would come now.
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.0.asked.lock().unwrap().clone()
    }
}

async fn started(folder: &Path, host: &Fake) -> Arc<dyn Instance> {
    let extension: Arc<dyn Instance> = Arc::new(crate::extension(folder.to_owned()));
    for command in [LifecycleCommand::Initialize, LifecycleCommand::Start] {
        extension.call(Call::Lifecycle(command), Arc::new(host.clone())).await.unwrap();
    }
    extension
}

/// What the host is asked for when something is fired.
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
    };
    let call = Call::Tool {
        call: CallId { turn: 1, index: 1 },
        tool: name.into(),
        arguments: arguments.into(),
        turn: Arc::new(turn),
    };
    match extension.call(call, Arc::new(host.clone())).await? {
        Reply::Content(content) => Ok(content.value().cloned().unwrap()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_reminder_comes_once_and_a_repetition_comes_again() {
    let (folder, host) = (tempfile::tempdir().unwrap(), Fake::default());
    let it = started(folder.path(), &host).await;
    let once = json!({ "in": "2h", "text": "call mum" });
    assert_eq!(tool(&it, &host, "schedule_once", once).await.unwrap(), json!({ "id": "s1", "next": 100 }));
    let again = json!({ "interval": "100", "topic": "tick", "payload": { "n": 1 } });
    tool(&it, &host, "schedule_recurring", again).await.unwrap();
    host.move_to(100);
    let asked = host.asked(2).await;
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!(asked[0], published("system.user.notify", json!({ "text": "call mum" }), "s1@100"));
    assert_eq!(asked[1].1["idempotency"], "scheduler/s2@100");
    host.move_to(200);
    assert_eq!(host.asked(3).await[2].1["idempotency"], "scheduler/s2@200");
    let listed = tool(&it, &host, "list_schedules", json!({})).await.unwrap();
    assert_eq!(listed["schedules"][0]["fired"], json!([100, "done"]));
    assert_eq!(listed["schedules"][0]["next"], Value::Null);
    tool(&it, &host, "cancel_schedule", json!({ "id": "s2" })).await.unwrap();
    host.move_to(300);
    assert_eq!(host.asked(4).await.len(), 3);
    assert!(tool(&it, &host, "cancel_schedule", json!({ "id": "s2" })).await.is_err());
}

#[tokio::test]
async fn what_is_due_while_nothing_runs_comes_once_afterwards() {
    let (folder, host) = (tempfile::tempdir().unwrap(), Fake::default());
    let it = started(folder.path(), &host).await;
    tool(&it, &host, "schedule_recurring", json!({ "cron": "* * * * *", "task": "tidy up" })).await.unwrap();
    it.call(Call::Lifecycle(LifecycleCommand::Stop), Arc::new(host.clone())).await.unwrap();
    host.move_to(1_050);
    let _it = started(folder.path(), &host).await;
    let task = published("system.agent.task", json!({ "prompt": "tidy up" }), "s1@100");
    assert_eq!(host.asked(1).await, [task]);
}

#[tokio::test]
async fn what_a_stop_came_in_the_middle_of_is_published_under_its_key() {
    let (folder, host) = (tempfile::tempdir().unwrap(), Fake::default());
    let book = Book::new(folder.path().to_owned());
    for action in
        [Action::Text("hello".to_owned()), Action::Event { topic: "t".to_owned(), payload: Value::Null }]
    {
        let entry = Entry { when: None, timezone: None, action, next: None, firing: Some(7), fired: None };
        book.add(entry).unwrap();
    }
    let it = started(folder.path(), &host).await;
    let both = [
        published("system.user.notify", json!({ "text": "hello" }), "s1@7"),
        published("t", Value::Null, "s2@7"),
    ];
    assert_eq!(host.asked(2).await, both);
    let listed = tool(&it, &host, "list_schedules", json!({})).await.unwrap();
    assert_eq!(listed["schedules"][0]["fired"], json!([7, "done"]));
}

#[tokio::test]
async fn what_cannot_be_published_now_is_published_later_and_what_never_can_is_said() {
    let (folder, host) = (tempfile::tempdir().unwrap(), Fake::default());
    let it = started(folder.path(), &host).await;
    for (code, outcome) in [(Code::StoreFull, "done"), (Code::EventRefused, "failed: not now")] {
        let before = host.asked(0).await.len();
        *host.0.trouble.lock().unwrap() = Some(code);
        let now = *host.0.time.lock().unwrap();
        tool(&it, &host, "schedule_once", json!({ "in": "2h", "text": "x" })).await.unwrap();
        host.move_to(now + 100);
        host.asked(before + 1).await;
        *host.0.trouble.lock().unwrap() = None;
        host.move_to(now + 200);
        let last = || async {
            let listed = tool(&it, &host, "list_schedules", json!({})).await.unwrap();
            listed["schedules"].as_array().unwrap().last().unwrap()["fired"].clone()
        };
        for _ in 0..2_000 {
            if last().await.is_array() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(last().await, json!([now + 100, outcome]));
    }
    let keys: Vec<Value> =
        host.asked(3).await.iter().map(|(_, asked)| asked["idempotency"].clone()).collect();
    assert_eq!(keys, ["scheduler/s1@100", "scheduler/s1@100", "scheduler/s2@300"]);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
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
