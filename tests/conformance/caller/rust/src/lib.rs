//! The caller in Rust. The other folders have the same in other languages.

use holdfast_extension::conversations::ThreadFilter;
use holdfast_extension::{
    Decision, Failure, ToolCall, agents, channels, conversations, discovery, environment, events, extensions,
    files, http, json, maintenance, prompts, results, secrets, services, subscriptions, system, timers, tool,
    tool_gate,
};

/// What each call answers does not matter here.
fn call_all() {
    let filter = ThreadFilter { thread: None, channel: Some("chat".into()), project: None, archived: true };
    drop(secrets::keep("TOKEN", "hunter2"));
    drop(agents::list());
    drop(agents::invoke_tool("hum", &json!({ "n": 1 })));
    drop(agents::invoke_model("a line", "be brief", Some("poet")));
    drop(prompts::describe_agent(Some("poet")));
    drop(conversations::list_threads(&filter));
    drop(conversations::update_thread("t1", &json!({ "title": "Plans" })));
    drop(conversations::history("t1"));
    drop(conversations::list_projects());
    drop(conversations::update_project(Some("garden"), &json!({ "name": "Garden" })));
    drop(conversations::remove_project("garden"));
    drop(results::read(1 << 32 | 1, 0, 10));
    drop(discovery::find_tools("hum", Some(3)));
    drop(discovery::list_capabilities());
    drop(maintenance::open());
    drop(maintenance::show("nobody"));
    drop(maintenance::apply("nobody", "x", &json!(1)));
    drop(maintenance::doctor(Some("nobody")));
}

/// Makes every call.
#[tool(name = "call_all", effects = "write")]
fn run() -> String {
    call_all();
    "made".into()
}

/// Makes the calls that other tests compare with a class.
#[tool(name = "call_more", effects = "write")]
fn more() -> String {
    let to = || agents::Recipient { channel: None, user: None, correlation: Some("c".into()) };
    drop(events::publish("news.weather", &json!({ "n": 1 }), Some("k")));
    drop(channels::notify("hello", Some("office"), Some("ada")));
    drop(channels::list());
    drop(agents::task(Some("idle"), "rest", &to()));
    drop(agents::background(Some("idle"), "rest", &to()));
    drop(prompts::enrich("hello", Some("idle")));
    drop(timers::next_due("every 1h", Some("Europe/Berlin")));
    drop(files::make_folder("made"));
    drop(files::write("made/new.txt", b"text"));
    drop(files::stat("made/new.txt"));
    drop(files::list("made"));
    drop(files::remove("made/new.txt"));
    drop(environment::get("LANG"));
    drop(system::restart(Some("why not")));
    "made".into()
}

/// Whether what was tried was denied.
fn is_denied<T>(answer: Result<T, Failure>) -> bool {
    matches!(answer, Err(Failure::Denied(_)))
}

/// Tries to act, in each way that there is besides those above, and says what was not denied.
fn reach_out() -> Vec<&'static str> {
    let event = events::NewEvent { topic: "caller.said", ..events::NewEvent::default() };
    let to = || agents::Recipient { channel: None, user: None, correlation: None };
    let followed = agents::invoke_streamed(Some("poet"), "sing").and_then(|agent| agent.answer());
    let tried = [
        ("publish", is_denied(events::publish("caller.said", &json!({}), None))),
        ("publish-event", is_denied(events::publish_event(&event))),
        ("subscribe", is_denied(subscriptions::subscribe("caller.said"))),
        ("unsubscribe", is_denied(subscriptions::unsubscribe("caller.said"))),
        ("secret", is_denied(secrets::get("TOKEN"))),
        ("wait", is_denied(timers::wait_until(0))),
        ("method", is_denied(extensions::call("office", "m", &json!({})))),
        ("service", is_denied(services::get("office/desk", &json!({})))),
        ("service call", is_denied(services::call("office/desk", "m", &json!({})))),
        ("invoke", is_denied(agents::invoke(Some("poet"), "sing"))),
        ("invoke-streamed", is_denied(followed)),
        ("task", is_denied(agents::task(Some("poet"), "sing", &to()))),
        ("background", is_denied(agents::background(Some("poet"), "sing", &to()))),
        ("notify", is_denied(channels::notify("hello", None, None))),
        ("enrich", is_denied(prompts::enrich("hello", None))),
        ("restart", is_denied(system::restart(None))),
        ("http", is_denied(http::get("http://127.0.0.1:9/", &[]))),
        ("read", is_denied(files::read("note.txt"))),
        ("list", is_denied(files::list("."))),
        ("stat", is_denied(files::stat("note.txt"))),
        ("write", is_denied(files::write("note.txt", b"text"))),
        ("remove", is_denied(files::remove("note.txt"))),
        ("make-folder", is_denied(files::make_folder("made"))),
        ("environment", is_denied(environment::get("LANG"))),
    ];
    tried.into_iter().filter(|(_, is_denied)| !is_denied).map(|(what, _)| what).collect()
}

#[tool_gate]
fn gate(call: ToolCall) -> Decision {
    match call.tool.as_str() {
        "probe" => call_all(),
        "reach" => {
            let passed = reach_out();
            if !passed.is_empty() {
                return Decision::Deny(passed.join(" "));
            }
        }
        _ => {}
    }
    Decision::Allow
}
