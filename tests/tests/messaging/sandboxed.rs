//! A component as a subscriber, as a channel, as a loop in the background, and as one that asks others.

use std::sync::Arc;

use holdfast_bus::NewEvent;
use holdfast_contract::manifest::{Grants, HandlerSpec};
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_lane_native::NativeExtension;
use holdfast_testkit::lab::TIMEOUT;
use holdfast_testkit::wasm::{Loops, MapVault, api, lane, manifest, radio, relay, service};
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::json;

use crate::fixtures::{Asking, Takes, later, outcomes, outcomes_of};
use crate::shared::Pool;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_takes_events_and_delivers_messages() {
    let vault = Arc::new(MapVault::default());
    let subscribes = "events: { subscribes: [{ topic: shop.sold, handler: custom }] }\n";
    let grants = Grants { interfaces: vec!["events".to_owned()], ..Grants::default() };
    let options = SandboxOptions::small();
    let found = vault.add_granted(&manifest("radio", subscribes), radio(), &options, grants);
    let takes = Takes::default();
    let probe = NativeExtension::new("probe", "1.0.0")
        .subscribes("heard", HandlerSpec::Custom)
        .subscribes("sent", HandlerSpec::Custom)
        .subscriber(takes.clone());
    let lab = Lab::build()
        .script([ScriptStep::says("good evening")])
        .extension(probe)
        .lane(lane(&vault), [found])
        .start()
        .await;

    lab.runtime.publish(NewEvent::new("shop.sold", json!({ "n": 1 }))).await.unwrap();
    lab.until("the event", |_| takes.all().len() == 1).await;
    assert_eq!((&takes.all()[0]["topic"], &takes.all()[0]["payload"]), (&json!("heard"), &json!({ "n": 1 })));

    let message = json!({ "text": "hello", "user_id": 7, "channel_id": "radio" });
    lab.runtime.publish(NewEvent::new("user.message", message)).await.unwrap();
    lab.until("the answer", |_| takes.all().len() == 2).await;
    assert_eq!(takes.all()[1]["payload"], "good evening");
    assert!(!lab.frames_of("radio.7").is_empty());
    assert_eq!(lab.findings(), Vec::new());
    lab.stop().await;
}

fn granted(interfaces: &[&str]) -> Grants {
    let interfaces = interfaces.iter().map(|name| (*name).to_owned()).collect();
    Grants { interfaces, ..Grants::default() }
}

/// A lab with a component that has a loop in the background, and one who takes what it publishes.
fn with_loop(does: &Loops, takes: &Takes, options: &SandboxOptions) -> LabBuilder {
    let vault = Arc::new(MapVault::default());
    let found = vault.add_granted(&manifest("clockwork", ""), service(does), options, granted(&["events"]));
    let probe = NativeExtension::new("probe", "1.0.0")
        .subscribes("tick", HandlerSpec::Custom)
        .subscriber(takes.clone());
    Lab::build().script([]).extension(probe).lane(lane(&vault), [found])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_components_loop_runs_on_fresh_budgets_until_it_is_stopped() {
    let (takes, mut options) = (Takes::default(), SandboxOptions::small());
    // Enough for a few rounds, and far from enough for thirty.
    options.budgets.host_calls = 12;
    let lab = with_loop(&Loops::Ticks, &takes, &options).start().await;
    later(&lab, "thirty ticks", |_| takes.all().len() >= 30).await;
    let all = lab.runtime.extensions().await.unwrap();
    assert!(all.iter().all(|it| it.active.is_some() && it.fault.is_none()), "{all:#?}");
    let asked =
        lab.frames_of("system").iter().filter(|frame| frame.envelope.kind.as_str() == "host.called").count();
    assert!(asked >= 30, "what it publishes is recorded");
    lab.runtime.removed("clockwork".into());
    lab.runtime.settled().await.unwrap();
    let before = takes.all().len();
    lab.clock.advance(holdfast_contract::ids::Millis(5_000));
    // Events of one topic without a key come in order.
    lab.runtime.publish(NewEvent::new("tick", json!("barrier"))).await.unwrap();
    later(&lab, "the barrier", |_| takes.all().iter().any(|it| it.to_string().contains("barrier"))).await;
    assert!(takes.all().len() <= before + 2, "it has stopped: {:?}", takes.all());
    lab.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_that_never_waits_can_be_stopped_too() {
    let lab = with_loop(&Loops::Spins, &Takes::default(), &SandboxOptions::small()).start().await;
    lab.runtime.settled().await.unwrap();
    tokio::time::timeout(TIMEOUT, lab.stop()).await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_that_ends_by_itself_is_a_fault() {
    let lab = with_loop(&Loops::Ends, &Takes::default(), &SandboxOptions::small()).start().await;
    lab.until("the fault", |lab| {
        let faults = lab.runtime.recent_faults(Some(&"clockwork".into())).unwrap();
        faults.iter().any(|it| it.phase == "service" && it.message.contains("has ended"))
    })
    .await;
    lab.stop().await;
}

/// A lab with a component that passes its tool's arguments on.
fn with_relay(component: Vec<u8>, grant: &str, pool: &Pool) -> LabBuilder {
    let vault = Arc::new(MapVault::default());
    let manifest = manifest("asking", "depends_on: [pool]\n");
    let found = vault.add_granted(&manifest, component, &SandboxOptions::small(), granted(&[grant]));
    let arguments = json!({ "name": "db", "n": 7 });
    let steps = [ScriptStep::calls([("relay", arguments)]), ScriptStep::says("done")];
    Lab::build().script(steps).extension(pool.extension()).lane(lane(&vault), [found])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_calls_methods_and_services_of_those_it_depends_on() {
    let asked = json!({ "name": "db", "n": 7 });
    let cases = [
        (
            relay(
                "extensions",
                "call",
                &[("extension", Some("pool")), ("method", Some("echo"))],
                "arguments",
            ),
            "extensions",
            asked.clone(),
        ),
        (
            relay("services", "get", &[("key", Some("pool/db"))], "arguments"),
            "services",
            json!({ "name": "db", "with": asked }),
        ),
        (
            relay("services", "call", &[("key", Some("pool/db")), ("method", Some("query"))], "arguments"),
            "services",
            json!("query by db 1.0.0"),
        ),
    ];
    for (component, grant, expected) in cases {
        let pool = Pool::new("1.0.0");
        let lab = with_relay(component, grant, &pool).start().await;
        lab.say("go").await;
        assert_eq!(outcomes(&lab), [Ok(expected)], "{grant}");
        assert!(lab.replay("s1").identical, "{grant}");
        lab.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_does_not_depend_on_another_does_not_reach_it() {
    let given = [("extension", Some("stranger")), ("method", Some("echo"))];
    let component = relay("extensions", "call", &given, "arguments");
    let stranger = NativeExtension::new("stranger", "1.0.0").api(Pool::new("1.0.0"));
    let lab = with_relay(component, "extensions", &Pool::new("1.0.0")).extension(stranger).start().await;
    lab.say("go").await;
    let told = outcomes(&lab).remove(0).unwrap_err();
    assert!(told.message.contains("does not depend on `stranger`"), "{told}");
    lab.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_asks_an_agent() {
    let component = relay("agents", "invoke", &[("agent", None)], "task");
    let pool = Pool::new("1.0.0");
    let lab = with_relay(component, "agents", &pool);
    // The session that asks calls the tool; the one that is asked is of the same script, and calls it too, until that is too deep.
    let lab = lab.settings(|settings| settings.depth_cap = 1).start().await;
    lab.say("go").await;
    assert_eq!(outcomes(&lab), [Ok(json!("done"))]);
    let sessions = lab.runtime.store().streams().unwrap();
    let asked: Vec<_> = sessions.iter().filter(|it| it.id.as_str().starts_with("agent.asking.")).collect();
    assert_eq!(asked.len(), 1, "{sessions:#?}");
    let deeper = outcomes_of(&lab, asked[0].id.as_str()).remove(0).unwrap_err();
    assert!(deeper.message.contains("2 deep"), "{deeper}");
    lab.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_offers_services_to_others() {
    let vault = Arc::new(MapVault::default());
    let found = vault.add(&manifest("index", "scope: shared\n"), api(), &SandboxOptions::small());
    let app = NativeExtension::new("app", "1.0.0")
        .depends_on(&["index"])
        .tool(Asking("get", "service.get"))
        .tool(Asking("use", "service.call"));
    let steps = [
        ScriptStep::calls([("get", json!({ "key": "index/words", "arguments": { "n": 1 } }))]),
        ScriptStep::calls([("use", json!({ "key": "index/words", "method": "find", "arguments": ["tea"] }))]),
        ScriptStep::says("done"),
    ];
    let lab = Lab::build().script(steps).extension(app).lane(lane(&vault), [found]).start().await;
    lab.say("go").await;
    let made = r#"service:create {"arguments":{"n":1},"name":"words"}"#;
    let called = r#"service:call {"arguments":["tea"],"method":"find","name":"words"}"#;
    assert_eq!(outcomes(&lab), [Ok(json!(made)), Ok(json!(called))]);
    assert!(lab.replay("s1").identical);
    lab.stop().await;
}
