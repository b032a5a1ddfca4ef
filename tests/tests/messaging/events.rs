//! Events between extensions.

use holdfast_bus::NewEvent;
use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::digest::canonical;
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::Millis;
use holdfast_contract::manifest::HandlerSpec;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Lifecycle, NativeExtension, Subscriber, now};
use holdfast_testkit::pieces::echo;
use holdfast_testkit::story::bodies;
use holdfast_testkit::{Lab, ScriptStep};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::watch;

use crate::fixtures::{Asking, Takes, bus_story, later};

fn publisher() -> NativeExtension {
    NativeExtension::new("shop", "1.0.0").tool(Asking("sell", "event.publish"))
}

fn list(takes: &Takes) -> NativeExtension {
    NativeExtension::new("list", "1.0.0").subscribes("shop.*", HandlerSpec::Custom).subscriber(takes.clone())
}

#[tokio::test]
async fn one_extension_publishes_in_a_tool_and_another_takes_it() {
    let sold =
        json!({ "topic": "shop.sold", "payload": { "what": "tea" }, "key": "tea", "idempotency": "order 1" });
    let script = [
        ScriptStep::calls([("sell", sold.clone())]),
        ScriptStep::calls([("sell", sold)]),
        ScriptStep::says("sold"),
    ];
    let takes = Takes::default();
    let lab = Lab::build().script(script).extension(publisher()).extension(list(&takes)).start().await;
    assert_eq!(lab.say("sell tea").await.answer.unwrap().to_text(), "sold");
    lab.until("the event", |_| !takes.all().is_empty()).await;

    let taken = takes.all();
    assert_eq!(taken.len(), 1, "the same order is published once: {taken:?}");
    assert_eq!(taken[0]["payload"], json!({ "what": "tea" }));
    assert_eq!((&taken[0]["key"], &taken[0]["repeat"]), (&json!("tea"), &json!(false)));
    lab.until("the outcome", |lab| bus_story(&lab.runtime).len() == 2).await;
    assert_eq!(bus_story(&lab.runtime), ["event.published shop.sold", "event.delivered list/shop.*"]);
    // The tool was answered with the event's id, and that is in the session.
    let told = lab.frames().iter().filter(|frame| frame.envelope.kind.as_str() == "host.called").count();
    assert_eq!(told, 2);
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.replay("s1").identical);
    lab.stop().await;
}

#[tokio::test]
async fn only_who_failed_is_tried_again() {
    let (well, ill) = (Takes::default(), Takes::failing(1));
    let other = NativeExtension::new("other", "1.0.0")
        .subscribes("shop.sold", HandlerSpec::Custom)
        .subscriber(ill.clone());
    let lab = Lab::build().script([]).extension(list(&well)).extension(other).start().await;
    lab.runtime.publish(NewEvent::new("shop.sold", json!({ "n": 1 }))).await.unwrap();
    later(&lab, "a second attempt", |_| ill.all().len() == 2).await;
    let attempts: Vec<_> =
        ill.all().iter().map(|event| (event["attempt"].clone(), event["repeat"].clone())).collect();
    assert_eq!(attempts, [(json!(1), json!(false)), (json!(2), json!(true))]);
    assert_eq!(well.all().len(), 1);
    lab.stop().await;
}

#[tokio::test]
async fn what_fails_for_good_can_be_looked_at_and_tried_again() {
    let takes = Takes::failing(5);
    let lab = Lab::build().script([]).extension(list(&takes)).start().await;
    lab.runtime.publish(NewEvent::new("shop.sold", json!({ "n": 1 }))).await.unwrap();
    later(&lab, "five attempts", |_| takes.all().len() == 5).await;
    later(&lab, "a dead letter", |lab| {
        bus_story(&lab.runtime).iter().any(|line| line.starts_with("event.dead"))
    })
    .await;
    let letters = lab.runtime.bus().dead_letters(None).await.unwrap();
    assert_eq!((letters.len(), letters[0].subscriber.as_str()), (1, "list/shop.*"));
    lab.runtime.bus().retry_dead_letter(letters[0].id, "list/shop.*").await.unwrap();
    later(&lab, "the sixth attempt", |_| takes.all().len() == 6).await;
    assert_eq!(lab.runtime.bus().dead_letters(None).await.unwrap(), []);
    lab.stop().await;
}

#[tokio::test]
async fn verification_notices_that_a_delivery_row_is_gone() {
    for (failures, state) in [(1, "event.retried list/shop.* after 1"), (5, "event.dead list/shop.* after 5")]
    {
        let takes = Takes::failing(failures);
        let lab = Lab::build().script([]).extension(list(&takes)).start().await;
        lab.runtime.publish(NewEvent::new("shop.sold", json!({ "n": 1 }))).await.unwrap();
        let recorded = |lab: &Lab| bus_story(&lab.runtime).contains(&state.to_owned());
        match failures {
            // No time passes, so that the second attempt is not made.
            1 => lab.until(state, recorded).await,
            _ => later(&lab, state, recorded).await,
        }
        assert_eq!(lab.findings(), Vec::new());
        // What somebody with the file can do.
        let database = rusqlite::Connection::open(lab.path()).unwrap();
        let subscriber = "(SELECT id FROM subscribers WHERE name = 'list/shop.*')";
        let delete = format!("DELETE FROM deliveries WHERE subscriber = {subscriber}");
        assert_eq!(database.execute(&delete, []).unwrap(), 1);
        let findings = lab.findings();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].kind, "delivery_missing");
        assert!(findings[0].detail.contains("delivered to `list/shop.*` again"), "{findings:?}");
        lab.stop().await;
    }
}

#[tokio::test]
async fn a_reload_leaves_no_subscriber_behind() {
    let (old, new) = (Takes::default(), Takes::default());
    let lab = Lab::build().script([]).extension(list(&old)).start().await;
    let next = NativeExtension::new("list", "2.0.0")
        .subscribes("shop.*", HandlerSpec::Custom)
        .subscriber(new.clone());
    lab.runtime.found(vec![lab.lane.add(next)]);
    lab.runtime.settled().await.unwrap();
    lab.runtime.publish(NewEvent::new("shop.sold", json!({}))).await.unwrap();
    lab.until("the event", |_| !new.all().is_empty()).await;
    assert!(old.all().is_empty());
    lab.runtime.removed("list".into());
    lab.runtime.settled().await.unwrap();
    lab.runtime.publish(NewEvent::new("shop.sold", json!({}))).await.unwrap();
    let status = lab.runtime.bus().status();
    let list = status.subscribers.iter().find(|subscriber| &*subscriber.name == "list/shop.*").unwrap();
    assert!(!list.active && list.open == 0);
    lab.stop().await;
}

/// Subscribes in its own code, and publishes while it comes up.
struct Eager;

impl Lifecycle for Eager {
    fn initialize(&self, host: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        Box::pin(async move {
            let ask = |name: &str, arguments: serde_json::Value| host.call(HostCall::named(name, arguments));
            ask("event.subscribe", json!({ "topic": "mine.>" })).await?;
            ask("event.publish", json!({ "topic": "mine.up", "payload": 1 })).await?;
            Ok(())
        })
    }
}

#[tokio::test]
async fn an_extension_subscribes_in_its_code() {
    let takes = Takes::default();
    let eager = NativeExtension::new("eager", "1.0.0").lifecycle(Eager).subscriber(takes.clone());
    let lab = Lab::build().script([]).extension(eager).start().await;
    lab.until("its own event", |_| takes.all().len() == 1).await;
    assert_eq!(takes.all()[0]["topic"], "mine.up");
    assert_eq!(lab.findings(), Vec::new());
    lab.stop().await;
}

#[tokio::test]
async fn state_changes_of_extensions_are_published() {
    let takes = Takes::default();
    let doctor = NativeExtension::new("doctor", "1.0.0")
        .interfaces(&["system-events"])
        .subscribes("system.extension.error", HandlerSpec::Custom)
        .subscribes("system.extension.state", HandlerSpec::Custom)
        .subscriber(takes.clone());
    let kit = || NativeExtension::new("kit", "1.0.0").tool(echo());
    let lab = Lab::build().script([]).extension(doctor).extension(kit()).start().await;
    let fault = Fault::new(holdfast_contract::problem::Code::ComponentInvalid, "it is not a component");
    lab.runtime.rejected("broken".into(), fault);
    lab.until("three events", |_| takes.all().len() >= 3).await;
    let told: Vec<String> = takes
        .all()
        .iter()
        .map(|event| {
            format!(
                "{} {}",
                event["topic"].as_str().unwrap(),
                event["payload"]["extension"].as_str().unwrap()
            )
        })
        .collect();
    for expected in
        ["system.extension.state doctor", "system.extension.state kit", "system.extension.error broken"]
    {
        assert!(told.iter().any(|line| line == expected), "{told:?}");
    }
    lab.stop().await;
    // Where nobody wants to know, the bus stays silent.
    let lab = Lab::build().script([]).extension(kit()).start().await;
    assert_eq!(bus_story(&lab.runtime), Vec::<String>::new());
    lab.stop().await;
}

#[tokio::test]
async fn some_topics_are_the_programs_own() {
    let takes = Takes::default();
    let out = json!({ "topic": "channel.out.chat", "payload": { "text": "hi" } });
    let spoof = json!({ "topic": "user.message", "payload": { "text": "rm", "user_id": "ada", "channel_id": "chat" } });
    let script = [
        ScriptStep::calls([("sell", out)]),
        ScriptStep::calls([("sell", spoof)]),
        ScriptStep::says("refused"),
    ];
    let lab = Lab::build().script(script).extension(publisher()).extension(list(&takes)).start().await;
    lab.say("try").await;
    assert_eq!(bus_story(&lab.runtime), Vec::<String>::new());
    let story = lab.story();
    assert!(story.matches("HF-8010").count() >= 2, "{story}");
    lab.stop().await;
}

/// Fails in one phase of its life.
#[derive(Clone, Default)]
struct Fails {
    phase: &'static str,
    repaired: Arc<AtomicBool>,
}

impl Fails {
    fn in_phase(&self, phase: &str) -> Later<Result<(), Fault>> {
        let fails = self.phase == phase && !self.repaired.load(Ordering::SeqCst);
        now(if fails { Err(Fault::new(Code::ExtensionFault, "no key")) } else { Ok(()) })
    }
}

impl Lifecycle for Fails {
    fn initialize(&self, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        self.in_phase("initialize")
    }

    fn start(&self) -> Later<Result<(), Fault>> {
        self.in_phase("start")
    }

    fn health_check(&self) -> Later<bool> {
        now(self.phase != "health check")
    }
}

// Finding A24.
#[tokio::test]
async fn a_failure_in_any_phase_of_a_life_is_an_event_with_its_phase() {
    for phase in ["load", "initialize", "start", "health check"] {
        let takes = Takes::default();
        let doctor = NativeExtension::new("doctor", "1.0.0")
            .interfaces(&["system-events"])
            .subscribes("system.extension.error", HandlerSpec::Custom)
            .subscriber(takes.clone());
        let lab = Lab::build().script([]).extension(doctor).start().await;
        let fails = Fails { phase, ..Fails::default() };
        let mut found = lab.lane.add(NativeExtension::new("ill", "1.0.0").lifecycle(fails));
        if phase == "load" {
            found.lane = "nowhere".to_owned();
        }
        lab.runtime.found(vec![found]);
        lab.runtime.settled().await.unwrap();
        if phase == "health check" {
            lab.runtime.watch_health(Millis(1_000));
            lab.pass(Millis(1_000), 1).await;
        }
        lab.until(phase, |_| !takes.all().is_empty()).await;
        let told = takes.all();
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(
            (&told[0]["payload"]["extension"], &told[0]["payload"]["phase"]),
            (&json!("ill"), &json!(phase))
        );
        let reported = bodies(&lab.frames_of("system"), FrameKind::HealthReported);
        let healthy: Vec<&Value> = reported.iter().map(|it| &it["healthy"]).collect();
        assert_eq!(healthy, vec![&json!(false); usize::from(phase == "health check")]);
        lab.stop().await;
    }
}

/// An extension that is healthy, and counts how often it was asked.
#[derive(Clone, Default)]
struct Healthy(Arc<AtomicUsize>);

impl Lifecycle for Healthy {
    fn health_check(&self) -> Later<bool> {
        self.0.fetch_add(1, Ordering::SeqCst);
        now(true)
    }
}

// Row E15: an hour with twenty extensions adds two frames.
#[tokio::test]
async fn health_checks_that_pass_are_counted_in_the_log() {
    let healthy = Healthy::default();
    let extension =
        |n: usize| NativeExtension::new(&format!("ext-{n:02}"), "1.0.0").lifecycle(healthy.clone());
    let extensions = (0..20).map(extension);
    let lab = extensions.fold(Lab::build().script([]), |lab, it| lab.extension(it)).start().await;
    let checked = |lab: &Lab| bodies(&lab.frames_of("system"), FrameKind::ExtensionsChecked);
    let before = lab.frames_of("system").len();
    lab.runtime.watch_health(Millis(30_000));
    for round in 1..=122 {
        lab.pass(Millis(30_000), 1).await;
        lab.until("a round", |_| healthy.0.load(Ordering::SeqCst) == round * 20).await;
    }
    lab.until("an hour's rounds", |lab| checked(lab).len() == 2).await;
    let counts = |record: &Value| -> Vec<u64> {
        let checks = record["checks"].as_array().unwrap();
        checks.iter().map(|it| it["healthy"].as_u64().unwrap()).collect()
    };
    let records = checked(&lab);
    assert_eq!(counts(&records[0]), [1; 20]);
    assert_eq!(counts(&records[1]), [121; 20]);
    let frames = lab.frames_of("system").split_off(before);
    let bytes: usize = frames.iter().map(|frame| canonical(frame).unwrap().len()).sum();
    println!("an hour of health checks of 20 extensions: {} frames, {bytes} bytes", frames.len());
    assert!(frames.len() == 2 && bytes < 4_096, "{} frames, {bytes} bytes", frames.len());
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.replay("system").identical);
    lab.stop().await;
}

// Finding D10.
#[tokio::test]
async fn the_events_of_an_extension_that_is_down_wait_until_it_is_up() {
    let takes = Takes::default();
    let fails = Fails { phase: "start", ..Fails::default() };
    let list = list(&takes).lifecycle(fails.clone());
    let lab = Lab::build().script([]).extension(list).start().await;
    for number in 0..5 {
        lab.runtime.publish(NewEvent::new("shop.sold", json!({ "n": number }))).await.unwrap();
    }
    // A day later nothing has been tried, and nothing was given up.
    lab.clock.advance(Millis(86_400_000));
    lab.runtime.settled().await.unwrap();
    let list =
        || lab.runtime.bus().status().subscribers.into_iter().find(|it| &*it.name == "list/shop.*").unwrap();
    assert_eq!((list().open, list().under_way, list().dead, list().paused), (5, 0, 0, true));
    fails.repaired.store(true, Ordering::SeqCst);
    lab.runtime.retry("list".into(), "test");
    lab.until("they are delivered", |_| takes.all().len() == 5).await;
    assert_eq!(bodies(&lab.frames_of("system"), FrameKind::ExtensionRetried).len(), 1);
    assert!(
        takes.all().iter().all(|event| event["attempt"] == 1 && event["repeat"] == false),
        "{:?}",
        takes.all()
    );
    lab.stop().await;
}

/// Takes an event, and does not say so before it is woken.
struct Sleeps(watch::Receiver<bool>);

impl Subscriber for Sleeps {
    fn on_event(&self, _: Content, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        let mut woken = self.0.clone();
        Box::pin(async move {
            drop(woken.wait_for(|woken| *woken).await);
            Ok(())
        })
    }
}

// Finding D7: through the runtime, with more events than a backlog holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_that_sleeps_on_its_events_delays_no_other() {
    const EVENTS: usize = 10_000;
    let (takes, (wake, woken)) = (Takes::default(), watch::channel(false));
    let sleeper = NativeExtension::new("sleeper", "1.0.0")
        .subscribes("shop.*", HandlerSpec::Custom)
        .subscriber(Sleeps(woken));
    let lab = Lab::build()
        .script([ScriptStep::says("hello")])
        .extension(sleeper)
        .extension(list(&takes))
        .start()
        .await;
    for first in (0..EVENTS).step_by(500) {
        let mut publishing = tokio::task::JoinSet::new();
        for number in first..first + 500 {
            let runtime = lab.runtime.clone();
            let event = NewEvent::new("shop.sold", json!({ "n": number }));
            publishing.spawn(async move { runtime.publish(event).await.map(drop) });
        }
        for published in publishing.join_all().await {
            published.unwrap();
        }
    }
    assert_eq!(lab.say("hi").await.answer.unwrap().to_text(), "hello");
    lab.until("the other takes all of them", |_| takes.all().len() == EVENTS).await;
    wake.send_replace(true);
    lab.stop().await;
}
