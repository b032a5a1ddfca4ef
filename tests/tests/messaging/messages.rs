//! Users on channels: their messages, their sessions, their answers.

use std::sync::Arc;

use holdfast_bus::NewEvent;
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Host, Later};
use holdfast_home::{Channels, SessionRule};
use holdfast_lane_native::{Lifecycle, NativeExtension};
use holdfast_testkit::pieces::{echo, hanging_tool};
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::fixtures::{Asking, Mailbox, bus_story, inputs, later, retry_codes};

fn chat(mailbox: &Mailbox) -> NativeExtension {
    NativeExtension::new("chat", "1.0.0").channel(mailbox.clone())
}

fn message(user: &str, text: &str, id: Option<&str>) -> NewEvent {
    let said: Value = json!({ "text": text, "user_id": user, "channel_id": "chat", "message_id": id });
    NewEvent::new("user.message", said)
}

async fn lab(mailbox: &Mailbox, steps: impl IntoIterator<Item = ScriptStep>) -> Lab {
    Lab::build().script(steps).extension(chat(mailbox)).start().await
}

#[tokio::test]
async fn a_message_becomes_a_turn_and_its_answer_goes_back() {
    let mailbox = Mailbox::default();
    let lab = lab(&mailbox, [ScriptStep::says("hello, Ada")]).await;
    lab.runtime.publish(message("ada", "hello", None)).await.unwrap();
    lab.until("the answer", |_| !mailbox.all().is_empty()).await;
    assert_eq!(mailbox.all(), ["ada: hello, Ada"]);
    assert_eq!(inputs(&lab, "chat.ada"), ["hello"]);
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.replay("chat.ada").identical);
    lab.stop().await;
}

#[tokio::test]
async fn a_channel_brings_its_own_users_messages() {
    let mailbox = Mailbox::default();
    let script = [
        ScriptStep::calls([(
            "bring",
            json!({ "topic": "user.message", "payload": { "text": "hello", "user_id": 7, "message_id": 1 } }),
        )]),
        ScriptStep::says("brought"),
    ];
    let chat = chat(&mailbox).tool(Asking("bring", "event.publish"));
    let lab = Lab::build().script(script).extension(chat).start().await;
    lab.say("bring it").await;
    lab.until("the message", |lab| inputs(lab, "chat.7") == ["hello"]).await;
    lab.stop().await;
}

#[tokio::test]
async fn messages_of_a_session_keep_their_order() {
    let mailbox = Mailbox::default();
    let lab = lab(&mailbox, (0..24).map(|_| ScriptStep::says("ok"))).await;
    for n in 0..12 {
        lab.runtime.publish(message("ada", &format!("a{n}"), None)).await.unwrap();
        lab.runtime.publish(message("bob", &format!("b{n}"), None)).await.unwrap();
    }
    lab.until("all answers", |_| mailbox.all().len() == 24).await;
    for (user, letter) in [("ada", "a"), ("bob", "b")] {
        let expected: Vec<String> = (0..12).map(|n| format!("{letter}{n}")).collect();
        assert_eq!(inputs(&lab, &format!("chat.{user}")), expected);
    }
    lab.stop().await;
}

#[tokio::test]
async fn the_same_message_is_taken_once() {
    let mailbox = Mailbox::default();
    let lab = lab(&mailbox, [ScriptStep::says("one"), ScriptStep::says("two")]).await;
    let first = lab.runtime.publish(message("ada", "hello", Some("17"))).await.unwrap();
    let again = lab.runtime.publish(message("ada", "hello", Some("17"))).await.unwrap();
    assert!(again.duplicate && again.id == first.id);
    lab.runtime.publish(message("ada", "bye", Some("18"))).await.unwrap();
    lab.until("two answers", |_| mailbox.all().len() == 2).await;
    assert_eq!(mailbox.all(), ["ada: one", "ada: two"]);
    assert_eq!(inputs(&lab, "chat.ada"), ["hello", "bye"]);
    lab.stop().await;
}

#[tokio::test]
async fn a_channel_says_which_sessions_its_users_have() {
    let mailbox = Mailbox::default();
    let sessions = [("chat".into(), SessionRule::PerChannel)].into();
    let lab = Lab::build()
        .script([ScriptStep::says("1"), ScriptStep::says("2")])
        .channels(Channels { sessions, ..Channels::default() })
        .extension(chat(&mailbox))
        .start()
        .await;
    lab.runtime.publish(message("ada", "hello", None)).await.unwrap();
    lab.runtime.publish(message("bob", "hi", None)).await.unwrap();
    lab.until("two answers", |_| mailbox.all().len() == 2).await;
    assert_eq!(inputs(&lab, "chat"), ["hello", "hi"]);
    assert_eq!(mailbox.all(), ["ada: 1", "bob: 2"]);
    lab.stop().await;
}

#[tokio::test]
async fn a_session_that_has_ended_is_followed_by_another() {
    let mailbox = Mailbox::default();
    let lab = lab(&mailbox, [ScriptStep::says("1"), ScriptStep::says("2")]).await;
    lab.runtime.publish(message("ada", "hello", None)).await.unwrap();
    lab.until("an answer", |_| mailbox.all().len() == 1).await;
    lab.runtime.resume(&"chat.ada".into()).unwrap().end("the user ended it").await.unwrap();
    lab.runtime.publish(message("ada", "again", None)).await.unwrap();
    lab.until("another", |_| mailbox.all().len() == 2).await;
    assert_eq!(inputs(&lab, "chat.ada.2"), ["again"]);
    lab.stop().await;
}

#[tokio::test]
async fn a_notice_goes_to_the_only_channel_or_to_the_default_one() {
    let mailbox = Mailbox { proactive: true, ..Mailbox::default() };
    let only = lab(&mailbox, []).await;
    only.runtime.publish(NewEvent::new("system.user.notify", json!({ "text": "rain" }))).await.unwrap();
    only.until("the notice", |_| mailbox.all().len() == 1).await;
    assert_eq!(mailbox.all(), ["*: rain"]);
    only.stop().await;

    let (one, other) = (Mailbox::default(), Mailbox { proactive: true, ..Mailbox::default() });
    let build = |channels: Channels| {
        let second = NativeExtension::new("mail", "1.0.0").channel(other.clone());
        Lab::build().script([]).channels(channels).extension(chat(&one)).extension(second)
    };
    let set = Channels { default: Some("mail".into()), ..Channels::default() };
    let several = build(set).start().await;
    several.runtime.publish(NewEvent::new("system.user.notify", json!({ "text": "snow" }))).await.unwrap();
    several.until("the notice", |_| other.all().len() == 1).await;
    assert!(one.all().is_empty());
    several.stop().await;

    let unset = build(Channels::default()).start().await;
    unset.runtime.publish(NewEvent::new("system.user.notify", json!({ "text": "hail" }))).await.unwrap();
    // It waits for the user's next chat, and does not become a dead letter.
    let waits = "event.published system.user.terminal".to_owned();
    later(&unset, "the waiting notice", |lab| bus_story(&lab.runtime).contains(&waits)).await;
    assert!(unset.runtime.bus().status().subscribers.iter().all(|it| it.fault.is_none() && it.dead == 0));
    assert_eq!((one.all().len(), other.all().len()), (0, 1));
    unset.stop().await;
}

#[tokio::test]
async fn a_channel_without_messages_of_its_own_writes_to_who_wrote_last() {
    let mailbox = Mailbox::default();
    let lab = lab(&mailbox, [ScriptStep::says("hello")]).await;
    lab.runtime.publish(message("ada", "hello", None)).await.unwrap();
    lab.until("the answer", |_| mailbox.all().len() == 1).await;
    lab.runtime.publish(NewEvent::new("system.user.notify", json!({ "text": "rain" }))).await.unwrap();
    lab.until("the notice", |_| mailbox.all().len() == 2).await;
    assert_eq!(mailbox.all()[1], "ada: rain");
    lab.stop().await;
}

fn restartable(mailbox: &Mailbox, steps: Vec<ScriptStep>) -> LabBuilder {
    let hang = hanging_tool("wait", holdfast_contract::tool::EffectClass::Pure, Millis(u64::MAX / 4));
    let kit = NativeExtension::new("kit", "1.0.0").tool(echo()).tool(hang);
    Lab::build().script(steps).extension(chat(mailbox)).extension(kit)
}

#[tokio::test]
async fn what_was_acknowledged_is_answered_once_after_a_restart_in_the_middle() {
    let mailbox = Mailbox::default();
    let before = restartable(&mailbox, vec![ScriptStep::calls([("wait", json!({}))])]).start().await;
    before.runtime.publish(message("ada", "hello", Some("1"))).await.unwrap();
    before.until("the tool", |lab| lab.ledger.count("tool chat.ada") == 1).await;
    let path = before.path().to_owned();
    // The bus gives its handlers a while, which passes at once here.
    let clock = before.clock.clone();
    let passing = tokio::spawn(async move {
        loop {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            clock.advance(Millis(2_000));
        }
    });
    let directory = before.stop().await;
    passing.abort();
    assert!(mailbox.all().is_empty());

    // The tool has no effects and is called again; this time the model needs none.
    let kit = NativeExtension::new("kit", "1.0.0").tool(echo()).tool(holdfast_testkit::pieces::tool(
        "wait",
        holdfast_contract::tool::EffectClass::Pure,
        Value::clone,
    ));
    let after = Lab::build()
        .script([ScriptStep::calls([("wait", json!({}))]), ScriptStep::says("at last")])
        .on(&path, Default::default())
        .extension(chat(&mailbox))
        .extension(kit)
        .start()
        .await;
    later(&after, "the answer", |_| !mailbox.all().is_empty()).await;
    assert_eq!(mailbox.all(), ["ada: at last"]);
    assert_eq!(inputs(&after, "chat.ada"), ["hello"], "the turn was taken up, not begun again");
    assert_eq!(after.findings(), Vec::new());
    after.stop().await;
    drop(directory);
}

/// A process: whatever runs in it ends with it, in the middle of whatever it does.
pub fn process<R>(life: impl Future<Output = R>) -> R {
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let left = threads.block_on(life);
    threads.shutdown_timeout(std::time::Duration::from_secs(5));
    left
}

#[test]
fn a_process_that_ends_in_the_middle_of_a_turn_leaves_it_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holdfast.db");
    let mailbox = Mailbox::default();
    process(async {
        let hangs = vec![ScriptStep::calls([("wait", json!({}))])];
        let lab = restartable(&mailbox, hangs).on(&path, Default::default()).start().await;
        lab.runtime.publish(message("ada", "hello", Some("1"))).await.unwrap();
        lab.runtime.publish(message("ada", "and?", Some("2"))).await.unwrap();
        lab.until("the tool", |lab| lab.ledger.count("tool chat.ada") == 1).await;
    });
    assert!(mailbox.all().is_empty());
    process(async {
        let kit = NativeExtension::new("kit", "1.0.0").tool(echo()).tool(holdfast_testkit::pieces::tool(
            "wait",
            holdfast_contract::tool::EffectClass::Pure,
            Value::clone,
        ));
        let steps =
            [ScriptStep::calls([("wait", json!({}))]), ScriptStep::says("one"), ScriptStep::says("two")];
        let lab = Lab::build().script(steps).on(&path, Default::default());
        let lab = lab.extension(chat(&mailbox)).extension(kit).start().await;
        later(&lab, "both answers", |_| mailbox.all().len() == 2).await;
        assert_eq!(mailbox.all(), ["ada: one", "ada: two"]);
        assert_eq!(inputs(&lab, "chat.ada"), ["hello", "and?"]);
        assert_eq!(lab.findings(), Vec::new());
        lab.stop().await;
    });
}

/// The bus knows the messages that wait before the system has started. A turn could not begin then, and each attempt would count.
#[test]
fn a_message_that_waits_is_not_attempted_before_the_policy_is_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holdfast.db");
    let mailbox = Mailbox::default();
    process(async {
        let hangs = vec![ScriptStep::calls([("wait", json!({}))])];
        let lab = restartable(&mailbox, hangs).on(&path, Default::default()).start().await;
        lab.runtime.publish(message("ada", "hello", Some("1"))).await.unwrap();
        lab.until("the tool", |lab| lab.ledger.count("tool chat.ada") == 1).await;
    });
    process(async {
        let steps = [ScriptStep::calls([("wait", json!({}))]), ScriptStep::says("at last")];
        let pure = holdfast_contract::tool::EffectClass::Pure;
        let wait = holdfast_testkit::pieces::tool("wait", pure, Value::clone);
        let kit = NativeExtension::new("kit", "1.0.0").tool(echo()).tool(wait);
        let lab = Lab::build().script(steps).on(&path, Default::default());
        fail::cfg("system::before_start", "sleep(1000)").unwrap();
        let lab = lab.extension(chat(&mailbox)).extension(kit).start().await;
        fail::remove("system::before_start");
        later(&lab, "the answer", |_| !mailbox.all().is_empty()).await;
        assert_eq!(mailbox.all(), ["ada: at last"]);
        let codes = retry_codes(&lab.runtime);
        assert!(!codes.contains(&Code::PolicyInvalid), "{codes:?}");
        lab.stop().await;
    });
}

/// An extension whose `initialize` takes until it is told to go on.
struct Starting(Arc<Notify>);

impl Lifecycle for Starting {
    fn initialize(&self, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        let go_on = self.0.clone();
        Box::pin(async move {
            go_on.notified().await;
            Ok(())
        })
    }
}

#[tokio::test]
async fn a_message_waits_without_an_attempt_while_extensions_start() {
    let (mailbox, go_on) = (Mailbox::default(), Arc::new(Notify::new()));
    let slow = NativeExtension::new("slow", "1.0.0").lifecycle(Starting(go_on.clone()));
    let lab = Lab::build().script([ScriptStep::says("hello, Ada")]);
    let lab = lab.extension(chat(&mailbox)).extension(slow).begin().await;
    let is_up =
        |lab: &Lab| lab.runtime.registry().others.iter().any(|entry| entry.kind.as_str() == "channel");
    lab.until("the channel is up", is_up).await;
    lab.runtime.publish(message("ada", "hello", Some("1"))).await.unwrap();
    let status = lab.runtime.bus().status();
    let queue = status.subscribers.iter().find(|queue| &*queue.name == "router.messages/chat").unwrap();
    assert_eq!((queue.paused, queue.open, queue.under_way), (true, 1, 0), "{queue:?}");
    go_on.notify_one();
    later(&lab, "the answer", |_| !mailbox.all().is_empty()).await;
    assert_eq!(mailbox.all(), ["ada: hello, Ada"]);
    assert_eq!(retry_codes(&lab.runtime), Vec::new());
    lab.stop().await;
}

#[test]
fn a_message_that_may_have_arrived_is_sent_again_and_marked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holdfast.db");
    let silent = Mailbox { silent: true, ..Mailbox::default() };
    process(async {
        let lab = restartable(&silent, vec![ScriptStep::says("hello, Ada")])
            .on(&path, Default::default())
            .start()
            .await;
        lab.runtime.publish(message("ada", "hello", Some("1"))).await.unwrap();
        lab.until("the answer", |_| silent.all().len() == 1).await;
    });
    let mailbox = Mailbox::default();
    process(async {
        let lab = restartable(&mailbox, Vec::new()).on(&path, Default::default()).start().await;
        later(&lab, "the answer again", |_| mailbox.all().len() == 1).await;
        assert_eq!(mailbox.all(), ["ada: hello, Ada (repeat)"]);
        assert_eq!(inputs(&lab, "chat.ada"), ["hello"]);
        lab.stop().await;
    });
}
