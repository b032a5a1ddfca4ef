//! The bus as a client of the protocol sees it.

use std::path::Path;
use std::sync::Arc;

use holdfast_bus::NewEvent;
use holdfast_contract::manifest::HandlerSpec;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::wire::Later;
use holdfast_lane_native::{Lifecycle, NativeExtension, now};
use holdfast_policy::{Policy, Profile, Rule};
use holdfast_rpc::{
    ApprovalAnswer, ApprovalChoice, BusDead, BusDeadDiscard, BusDeadList, BusMethod, BusPublish,
    BusPublished, BusStatus, Client, DeadLetterInfo, ExtensionProblem, Hub, NoParams, Server, ServerContext,
    ServerHello, SessionMethod, Status, SystemMethod, UsageInfo, VERSION,
};
use holdfast_testkit::pieces::write;
use holdfast_testkit::{Lab, ScriptStep};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use crate::fixtures::{Takes, later};

/// A client of an owner of this lab's runtime.
async fn client(lab: &Lab) -> Client {
    let (client, _notices) = Client::new(connect(lab));
    client
}

/// A connection to an owner of this lab's runtime.
fn connect(lab: &Lab) -> DuplexStream {
    connect_remembering(lab, |_| panic!("nobody remembers a rule here"))
}

/// The same with an owner that does this with a rule.
fn connect_remembering(
    lab: &Lab,
    remember: impl Fn(Rule) -> Result<Policy, Problem> + Send + Sync + 'static,
) -> DuplexStream {
    let server = Server::new(ServerContext {
        runtime: lab.runtime.clone(),
        hub: Arc::new(Hub::default()),
        welcome: ServerHello {
            version: VERSION,
            program: "test".to_owned(),
            process: 1,
            home: String::new(),
            profile: "full-auto".to_owned(),
            model: "script".into(),
        },
        create_session: Box::new(|_| panic!("nobody opens a session here")),
        remember: Box::new(remember),
    });
    let (here, there) = tokio::io::duplex(1 << 16);
    tokio::spawn(server.serve(there));
    here
}

/// The inputs of the fuzz target `client_protocol` that are not requests: each is answered, with a code.
#[tokio::test]
async fn invalid_lines_are_answered_with_a_code() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/client_protocol/wrong");
    let lines = std::fs::read_to_string(file).unwrap();
    let lab = Lab::build().script([]).start().await;
    let (reader, mut writer) = tokio::io::split(connect(&lab));
    writer.write_all(lines.as_bytes()).await.unwrap();
    let mut answers = BufReader::new(reader).lines();
    for line in lines.lines() {
        let answer: Value = serde_json::from_str(&answers.next_line().await.unwrap().unwrap()).unwrap();
        let code = answer["error"]["data"]["code"].as_str().unwrap_or_default();
        assert!(code.starts_with("HF-") && answer["error"]["code"].is_i64(), "{line}: {answer}");
    }
    lab.stop().await;
}

#[tokio::test]
async fn dead_letters_are_listed_shown_retried_and_discarded() {
    let takes = Takes::failing(10);
    let list = NativeExtension::new("list", "1.0.0")
        .subscribes("shop.*", HandlerSpec::Custom)
        .subscriber(takes.clone());
    let lab = Lab::build().script([]).extension(list).start().await;
    let client = client(&lab).await;
    let sold = BusPublish {
        topic: "shop.sold".to_owned(),
        payload: json!({ "what": "tea" }),
        key: None,
        correlation: None,
        idempotency: Some("1".to_owned()),
    };
    let published: BusPublished = client.ask(&BusMethod::Publish(sold.clone())).await.unwrap();
    let again: BusPublished = client.ask(&BusMethod::Publish(sold)).await.unwrap();
    assert!(again.duplicate && again.event == published.event);

    later(&lab, "a dead letter", |lab| lab.runtime.bus().status().subscribers.iter().any(|it| it.dead == 1))
        .await;
    let listed = || BusMethod::DeadList(BusDeadList { subscriber: None });
    let letters: Vec<DeadLetterInfo> = client.ask(&listed()).await.unwrap();
    assert_eq!((letters.len(), letters[0].attempts, &letters[0].payload), (1, 5, &None));
    let named = || BusDead { event: published.event.clone(), subscriber: None };
    let shown: DeadLetterInfo = client.ask(&BusMethod::DeadShow(named())).await.unwrap();
    assert_eq!((shown.topic.as_deref(), shown.payload), (Some("shop.sold"), Some(json!({ "what": "tea" }))));

    let _: DeadLetterInfo = client.ask(&BusMethod::DeadRetry(named())).await.unwrap();
    later(&lab, "five more attempts", |lab| {
        takes.all().len() == 10 && lab.runtime.bus().status().subscribers.iter().any(|it| it.dead == 1)
    })
    .await;
    let BusDead { event, subscriber } = named();
    let discard = BusDeadDiscard { event, subscriber, reason: "enough".to_owned() };
    let _: DeadLetterInfo = client.ask(&BusMethod::DeadDiscard(discard)).await.unwrap();
    let letters: Vec<DeadLetterInfo> = client.ask(&listed()).await.unwrap();
    assert!(letters.is_empty());
    let status: BusStatus = client.ask(&BusMethod::Status(NoParams {})).await.unwrap();
    let names: Vec<&str> = status.subscribers.iter().map(|it| it.name.as_str()).collect();
    assert!(names.contains(&"list/shop.*") && names.contains(&"router.messages"), "{names:?}");
    let missing = client.ask::<DeadLetterInfo>(&BusMethod::DeadShow(named())).await.unwrap_err();
    assert_eq!(missing.code.as_str(), "HF-8008");
    assert_eq!(lab.findings(), Vec::new());
    lab.stop().await;
}

/// Cannot start.
struct Falls;

impl Lifecycle for Falls {
    fn start(&self) -> Later<Result<(), Fault>> {
        now(Err(Fault::new(Code::ExtensionFault, "no ground to stand on")))
    }
}

#[tokio::test]
async fn the_status_has_queues_usage_and_degraded_extensions() {
    let list = NativeExtension::new("list", "1.0.0")
        .subscribes("shop.*", HandlerSpec::Custom)
        .subscriber(Takes::failing(10));
    let broken = NativeExtension::new("broken", "1.0.0").lifecycle(Falls);
    let hello = ScriptStep::says("hello").costing(12, 30);
    let lab = Lab::build().script([hello]).extension(list).extension(broken).start().await;
    let client = client(&lab).await;
    let status = || async { client.ask::<Status>(&SystemMethod::Status(NoParams {})).await.unwrap() };
    let Status { queues, spent, degraded, failed, .. } = status().await;
    assert_eq!((queues.open, queues.dead, spent.model_calls, spent.tokens), (0, 0, 0, 0));
    assert!(degraded.is_empty());
    let names = |lines: &[ExtensionProblem]| lines.iter().map(|it| it.extension.clone()).collect::<Vec<_>>();
    assert_eq!(names(&failed), ["broken"]);
    assert!(failed[0].message.contains("no ground to stand on") && !failed[0].fix.is_empty());

    lab.session().say("chat", "hello").await.unwrap();
    lab.runtime.rejected("list".into(), Fault::new(Code::ManifestSyntax, "what is there now cannot be read"));
    lab.runtime.settled().await.unwrap();
    for number in 0..3 {
        let event = NewEvent::new("shop.sold", json!({ "number": number })).key("tea");
        lab.runtime.publish(event).await.unwrap();
    }
    let during = status().await;
    assert_eq!(during.queues.open, 3, "{during:#?}");
    assert_eq!(names(&during.degraded), ["list"], "it serves as it was");
    let UsageInfo { model_calls, tokens, cost_micros } = during.spent;
    assert_eq!((model_calls, tokens, cost_micros), (1, 12, 30));
    later(&lab, "dead letters", |lab| lab.runtime.bus().status().subscribers.iter().any(|it| it.dead == 2))
        .await;
    let after = status().await;
    assert!(after.queues.dead == 2 && after.uptime_ms >= 500, "{after:#?}");
}

// Finding M4: a rule that "always" writes is for the code that the person was shown.
#[tokio::test]
async fn always_is_for_the_code_that_was_shown() {
    for replaced in [false, true] {
        let kit = |version: &str| NativeExtension::new("kit", version).tool(write());
        let script = [ScriptStep::calls([("write", json!({ "path": "a" }))]), ScriptStep::says("done")];
        let standard = Profile::Standard;
        let lab = Lab::build().script(script).extension(kit("1.0.0")).profile(standard).start().await;
        let rules: Arc<std::sync::Mutex<Vec<Rule>>> = Arc::default();
        let written = rules.clone();
        let (client, _notices) = Client::new(connect_remembering(&lab, move |rule| {
            written.lock().unwrap().push(rule);
            Ok(Policy::profile(Profile::Standard))
        }));
        let turn = lab.begin("go");
        let pending = lab.approval().await;
        if replaced {
            lab.runtime.found(vec![lab.lane.add(kit("2.0.0"))]);
            lab.runtime.settled().await.unwrap();
        }
        let (session, answer) = ("s1".into(), ApprovalChoice::Always);
        let answer = ApprovalAnswer { session, approval: pending.approval, answer };
        let answered = client.ask::<Value>(&SessionMethod::ApprovalAnswer(answer)).await;
        assert_eq!(answered.is_err(), replaced, "{answered:?}");
        // The call runs, or is told that its code is gone; it does not wait any more.
        assert_eq!(turn.await.unwrap().answer.unwrap().to_text(), "done");
        let names: Vec<String> = rules.lock().unwrap().iter().map(|rule| rule.name.to_string()).collect();
        let expected: &[&str] = if replaced { &[] } else { &["always/kit/write"] };
        assert_eq!(names, expected);
        lab.stop().await;
    }
}
