//! Agents that nobody at a surface asks: for tasks, for events, for other extensions.

use holdfast_bus::NewEvent;
use holdfast_contract::manifest::Handler;
use holdfast_lane_native::Extension;
use holdfast_testkit::pieces::agent;
use holdfast_testkit::{Lab, Script, Step};
use serde_json::json;

use crate::pieces::{Asking, Mailbox, bus_story, later};

fn chat(mailbox: &Mailbox) -> Extension {
    Extension::new("chat", "1.0.0").channel(mailbox.clone())
}

fn mailbox() -> Mailbox {
    Mailbox { proactive: true, ..Mailbox::default() }
}

#[tokio::test]
async fn a_task_is_done_and_the_user_is_told() {
    let mailbox = mailbox();
    let lab = Lab::build().script([Step::says("it rains")]).extension(chat(&mailbox)).start().await;
    let task = NewEvent::new("system.agent.task", json!({ "prompt": "how is the weather?" }));
    let id = lab.runtime.publish(task).await.unwrap().id;
    lab.until("the answer", |_| mailbox.all().len() == 1).await;
    assert_eq!(mailbox.all(), ["*: it rains"]);
    let session = format!("task.{}", id.to_string().replace('/', "-"));
    assert!(!lab.frames_of(&session).is_empty());
    assert!(lab.replay(&session).identical);
    lab.stop().await;
}

#[tokio::test]
async fn a_background_task_is_done_in_silence() {
    let mailbox = mailbox();
    let lab = Lab::build().script([Step::says("done")]).extension(chat(&mailbox)).start().await;
    let task = NewEvent::new("system.agent.background", json!({ "task": "tidy up" }));
    lab.runtime.publish(task).await.unwrap();
    lab.until("the end", |lab| {
        bus_story(&lab.runtime).contains(&"event.delivered router.background".to_owned())
    })
    .await;
    assert!(mailbox.all().is_empty());
    lab.stop().await;
}

#[tokio::test]
async fn an_event_invokes_an_extensions_agent_and_the_user_gets_its_answer() {
    let mailbox = mailbox();
    let reminders = Extension::new("reminders", "1.0.0")
        .subscribes("reminder.due", Handler::InvokeAgent)
        .agent(agent("reminder", "other"));
    let lab = Lab::build()
        .script([])
        .model("other", Script::new([Step::says("Call mum!")]))
        .extension(chat(&mailbox))
        .extension(reminders)
        .start()
        .await;
    lab.runtime.publish(NewEvent::new("reminder.due", json!({ "text": "call mum" }))).await.unwrap();
    lab.until("the answer", |_| mailbox.all().len() == 1).await;
    assert_eq!(mailbox.all(), ["*: Call mum!"]);
    assert_eq!(lab.findings(), Vec::new());
    lab.stop().await;
}

#[tokio::test]
async fn an_event_is_shown_to_the_user_where_a_manifest_says_so() {
    let mailbox = mailbox();
    let alarms = Extension::new("alarms", "1.0.0").subscribes("alert.>", Handler::NotifyUser);
    let lab = Lab::build().script([]).extension(chat(&mailbox)).extension(alarms).start().await;
    lab.runtime.publish(NewEvent::new("alert.urgent", json!({ "text": "fire" }))).await.unwrap();
    lab.until("the notice", |_| mailbox.all().len() == 1).await;
    assert_eq!(mailbox.all(), ["*: fire"]);
    lab.stop().await;
}

#[tokio::test]
async fn a_tool_asks_the_agent_and_never_its_own_session() {
    let helper = || Extension::new("helper", "1.0.0").tool(Asking("think", "agent.invoke"));
    let script = [
        Step::calls([("think", json!({ "agent": "sage", "task": "what is 6 times 7?" }))]),
        Step::says("It is 42."),
    ];
    let lab = Lab::build()
        .script(script)
        .model("other", Script::new([Step::says("42")]))
        .extension(helper())
        .extension(Extension::new("wise", "1.0.0").agent(agent("sage", "other")))
        .start()
        .await;
    assert_eq!(lab.say("ask").await.answer.unwrap().to_text(), "It is 42.");
    let sessions: Vec<_> = lab.runtime.store().streams().unwrap().into_iter().map(|info| info.id).collect();
    let asked = sessions.iter().find(|id| id.as_str().starts_with("agent.helper.")).unwrap();
    assert!(lab.replay(asked.as_str()).identical);
    assert!(lab.story().contains("42"), "{}", lab.story());
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.replay("s1").identical);
    lab.stop().await;

    // An agent that asks for itself is stopped before it is too deep.
    let endless = [Step::calls([("think", json!({ "task": "deeper" }))]), Step::says("enough")];
    let lab = Lab::build().script(endless).extension(helper()).start().await;
    assert_eq!(lab.say("go").await.answer.unwrap().to_text(), "enough");
    let streams = lab.runtime.store().streams().unwrap();
    let too_deep = |id: &str| {
        let frames = lab.frames_of(id);
        let bodies = frames.iter().filter_map(|frame| frame.body.as_ref());
        bodies.filter(|body| body["ask"] == "agent.invoke").any(|body| body.to_string().contains("3005"))
    };
    assert_eq!(streams.iter().filter(|info| too_deep(info.id.as_str())).count(), 1);
    lab.stop().await;
}

#[tokio::test]
async fn a_tool_tells_the_user_and_asks_for_a_task() {
    let mailbox = mailbox();
    let kit = Extension::new("kit", "1.0.0")
        .tool(Asking("tell", "user.notify"))
        .tool(Asking("order", "agent.task"));
    let script = [
        Step::calls([("tell", json!({ "text": "one moment" }))]),
        Step::calls([("order", json!({ "task": "write a poem", "channel": "chat" }))]),
        Step::says("ordered"),
        Step::says("a poem"),
    ];
    let lab = Lab::build().script(script).extension(chat(&mailbox)).extension(kit).start().await;
    lab.say("go").await;
    later(&lab, "both", |_| mailbox.all().len() == 2).await;
    let mut sent = mailbox.all();
    sent.sort();
    assert_eq!(sent.len(), 2);
    assert!(sent.contains(&"*: one moment".to_owned()), "{sent:?}");
    lab.stop().await;
}
