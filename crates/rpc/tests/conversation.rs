//! A whole conversation over the protocol alone: an approval, a question, an answer that is streamed, a client that disconnects in the
//! middle and another one that goes on, and what a client reads back afterwards. The feed's order is checked at every message.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::content::Content;
use holdfast_contract::frame::Frame;
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::{CallId, Seq, StreamId};
use holdfast_contract::manifest::Profile;
use holdfast_contract::message::{AskedCall, Message, Origin, TurnView, Usage};
use holdfast_contract::problem::Fault;
use holdfast_contract::session_frames::{
    ModelFailed, ModelReturned, SessionSettings, TurnOutcome, UiQuestion,
};
use holdfast_contract::tool::{EffectClass, ToolOutcome, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{FnTool, NativeExtension, NativeLane, Tool};
use holdfast_model::{Delta, Deltas, Model, ModelRequest};
use holdfast_policy::Policy;
use holdfast_rpc::{
    ApprovalAnswer, ApprovalChoice, ApprovalInfo, ApprovalShow, Client, Hub, Notification, Server,
    ServerContext, ServerHello, SessionFrames, SessionList, SessionMethod, SessionOpen, SessionOpened,
    SessionParams, SessionSend, SessionSummary, SessionTurn, TurnDetails, TurnEnd, UiAnswer, VERSION,
};
use holdfast_runtime::{HomeParts, NewSession, OsEntropy, Parts, Routes, Runtime, SystemClock};
use holdfast_store::{Store, StoreOptions};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

const BEGINNING: &str = "The colour is ";

/// The rest of the answer. It is too long to stand in a frame.
fn rest() -> String {
    "red, and red again. ".repeat(300)
}

/// A tool that asks the user for a colour.
struct AsksColor;

impl Tool for AsksColor {
    fn spec(&self) -> ToolSpec {
        ToolSpec { effects: EffectClass::Pure, ..ToolSpec::named("colour", "Asks for a colour.") }
    }

    fn call(&self, _: CallId, _: Content, _: TurnView, host: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        let options = vec!["red".to_owned(), "blue".to_owned()];
        host.call(HostCall::Ui(UiQuestion::Select { prompt: "Which?".to_owned(), options }))
    }
}

/// Calls a tool that needs an approval, then one that asks, and then answers: the second half when it is told to.
struct Conversation(Arc<Notify>);

impl Model for Conversation {
    fn complete(&self, ask: Box<ModelRequest>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let called = ask.messages.iter().filter(|message| matches!(message, Message::Tool { .. })).count();
        let go_on = self.0.clone();
        Box::pin(async move {
            Ok(match called {
                0 => calls(&deltas, "save", json!({ "path": "notes" })),
                1 => calls(&deltas, "colour", json!({})),
                _ => {
                    deltas(Delta::Text(BEGINNING));
                    go_on.notified().await;
                    rest().split_inclusive(' ').for_each(|word| deltas(Delta::Text(word)));
                    returned(&format!("{BEGINNING}{}", rest()), Vec::new())
                }
            })
        })
    }
}

fn calls(deltas: &Deltas, tool: &str, arguments: Value) -> ModelReturned {
    deltas(Delta::Reasoning("A tool is needed."));
    deltas(Delta::Text("I use a tool."));
    let call = AskedCall { model_id: "1".into(), tool: tool.into(), arguments: Content::new(arguments) };
    returned("I use a tool.", vec![call])
}

fn returned(text: &str, calls: Vec<AskedCall>) -> ModelReturned {
    ModelReturned { text: Content::text(text), reasoning: None, calls, usage: Usage::default() }
}

async fn owner(folder: &std::path::Path, go_on: Arc<Notify>) -> (Runtime, Server) {
    let lane = NativeLane::default();
    let save = ToolSpec { effects: EffectClass::Write, ..ToolSpec::named("save", "Saves.") };
    let found = lane.add(
        NativeExtension::new("lab", "1.0.0")
            .tool(AsksColor)
            .tool(FnTool(save, |_: &Content| Ok(Content::text("saved")))),
    );
    let (hub, model) = (Arc::new(Hub::default()), Arc::new(Conversation(go_on)) as Arc<dyn Model>);
    let runtime = Runtime::start(Parts {
        store: Store::open(&folder.join("holdfast.db"), StoreOptions::default()).unwrap(),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(OsEntropy),
        models: BTreeMap::from([("lab".into(), model)]),
        lanes: vec![Arc::new(lane)],
        extensions: vec![found],
        policy: Policy::profile(Profile::Standard),
        surface: hub.clone(),
        routes: Routes::default(),
        home: HomeParts::default(),
    })
    .await
    .unwrap();
    let welcome = ServerHello {
        version: VERSION,
        program: "test".to_owned(),
        process: 1,
        home: String::new(),
        profile: "standard".to_owned(),
        model: "lab".into(),
    };
    let server = Server::new(ServerContext {
        runtime: runtime.clone(),
        hub,
        welcome,
        create_session: Box::new(|open| {
            let new = NewSession {
                id: open.session.clone().unwrap(),
                origin: Origin { channel: open.channel.clone(), user: None },
                agent: "main".into(),
                instructions: Content::default(),
                settings: SessionSettings { models: vec!["lab".into()], ..SessionSettings::default() },
            };
            Ok((new, Vec::new()))
        }),
        remember: Box::new(|_| Ok(Policy::profile(Profile::Standard))),
    });
    (runtime, server)
}

/// A client that applies its feed, and checks the order of it.
struct Follower {
    client: Client,
    notifications: mpsc::UnboundedReceiver<Notification>,
    /// Ends the connection when it is aborted.
    wire: JoinHandle<()>,
    next: Seq,
    frames: Vec<Frame>,
    /// The pieces of the answer that is being written, each with its offset.
    pieces: Vec<(u64, String)>,
}

impl Follower {
    async fn open(server: &Server, frames_from: Option<Seq>) -> Self {
        let (ours, mut near) = tokio::io::duplex(1 << 16);
        let (mut far, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(server.clone().serve(theirs));
        let wire = tokio::spawn(async move {
            tokio::io::copy_bidirectional(&mut near, &mut far).await.ok();
        });
        let (client, notifications) = Client::new(ours);
        client.hello("test").await.unwrap();
        let session = Some(session());
        let open =
            SessionOpen { session, create: true, answers: true, frames_from, ..SessionOpen::default() };
        let opened: SessionOpened = client.ask(&SessionMethod::Open(open)).await.unwrap();
        let next = frames_from.unwrap_or(opened.next);
        Self { client, notifications, wire, next, frames: Vec::new(), pieces: Vec::new() }
    }

    /// Applies the next message.
    async fn step(&mut self) -> Notification {
        let notification = self.notifications.recv().await.expect("the feed goes on");
        match &notification {
            Notification::Frame(frame) => {
                assert_eq!(frame.envelope.seq, self.next, "frames come in order, each once");
                self.next = frame.envelope.seq.next();
                if frame.envelope.kind == FrameKind::ModelRequested {
                    self.pieces.clear();
                }
                self.frames.push(frame.clone());
            }
            Notification::Text { after, offset, text, .. } => {
                assert!(*after < self.next, "a piece follows a frame that was sent");
                let asked = self.frames.iter().rev().find(|frame| frame.envelope.seq == *after);
                assert!(asked.is_none_or(|frame| frame.envelope.kind == FrameKind::ModelRequested));
                let answered = |frame: &Frame| {
                    frame.envelope.seq > *after && frame.envelope.kind == FrameKind::ModelReturned
                };
                assert!(!self.frames.iter().any(answered), "a piece comes before its answer's frame");
                self.pieces.push((*offset, text.clone()));
            }
            Notification::Reasoning { after, .. } | Notification::Progress { after, .. } => {
                assert!(*after < self.next, "a piece follows a frame that was sent");
            }
            other => panic!("{other:?}"),
        }
        notification
    }

    /// Applies messages up to the next frame of this kind.
    async fn until(&mut self, kind: FrameKind) -> Frame {
        loop {
            if let Notification::Frame(frame) = self.step().await
                && frame.envelope.kind == kind
            {
                return frame;
            }
        }
    }

    /// Asks for something whose answer tells nothing.
    async fn acknowledged(&self, method: SessionMethod) {
        self.client.ask::<Value>(&method).await.unwrap();
    }
}

fn session() -> StreamId {
    "talk".into()
}

#[tokio::test]
async fn a_conversation_with_a_reconnect_needs_nothing_but_the_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let go_on = Arc::new(Notify::new());
    let (runtime, server) = owner(folder.path(), go_on.clone()).await;
    let mut first = Follower::open(&server, None).await;
    let client = first.client.clone();
    let sent = tokio::spawn(async move {
        let send = SessionSend { session: session(), text: "Save it.".to_owned(), attachments: Vec::new() };
        client.ask::<TurnEnd>(&SessionMethod::Send(send)).await
    });

    // An approval.
    let asked = first.until(FrameKind::ApprovalRequested).await;
    assert_eq!(first.pieces, [(0, "I use a tool.".to_owned())]);
    let approval = asked.envelope.seq;
    let show = SessionMethod::ApprovalShow(ApprovalShow { session: session(), approval });
    let shown: ApprovalInfo = first.client.ask(&show).await.unwrap();
    assert_eq!((shown.tool.as_str(), &shown.arguments), ("save", &json!({ "path": "notes" })));
    assert_eq!(shown.extension.as_ref().map(|id| id.as_str()), Some("lab"));
    let answer = ApprovalAnswer { session: session(), approval, answer: ApprovalChoice::Once };
    first.acknowledged(SessionMethod::ApprovalAnswer(answer)).await;
    first.until(FrameKind::ApprovalAnswered).await;
    let late = first.client.ask::<ApprovalInfo>(&show).await.unwrap_err();
    assert_eq!(late.code.as_str(), "HF-3002", "it is answered");

    // A question of an extension.
    let asked = first.until(FrameKind::UiRequested).await;
    let Body::UiRequested(question) = first.client.body(&asked).await.unwrap() else { panic!("{asked:?}") };
    assert!(matches!(question.question, UiQuestion::Select { ref options, .. } if options[0] == "red"));
    let answer = |request| UiAnswer { session: session(), request, answer: Some(json!("red")) };
    first.acknowledged(SessionMethod::UiAnswer(answer(asked.envelope.seq))).await;
    let again = first.client.ask::<Value>(&SessionMethod::UiAnswer(answer(asked.envelope.seq))).await;
    assert_eq!(again.unwrap_err().code.as_str(), "HF-3002");

    // The answer begins, and the client is disconnected in the middle of it.
    first.until(FrameKind::UiAnswered).await;
    first.until(FrameKind::ModelRequested).await;
    while first.pieces.is_empty() {
        first.step().await;
    }
    assert_eq!(first.pieces, [(0, BEGINNING.to_owned())]);
    first.wire.abort();
    assert!(sent.await.unwrap().is_err(), "nobody is left to tell");

    // Another one goes on where it was. It sees that the beginning of the answer is missing.
    let mut second = Follower::open(&server, Some(first.next)).await;
    let client = second.client.clone();
    let waits = tokio::spawn(async move {
        let end = client.ask::<TurnEnd>(&SessionMethod::Wait(SessionParams { session: session() })).await;
        end.unwrap()
    });
    // One that comes with no number gets the running turn from its beginning.
    let mut third = Follower::open(&server, None).await;
    third.next = Seq(1);
    go_on.notify_one();
    second.until(FrameKind::TurnEnded).await;
    third.until(FrameKind::TurnEnded).await;
    let end = waits.await.unwrap();
    assert_eq!(end.ended.next(), second.next);
    let missing = BEGINNING.len() as u64;
    assert_eq!(second.pieces.first().map(|(offset, _)| *offset), Some(missing));
    let text: String = second.pieces.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(text, rest());
    assert_eq!(end.answer, Some(Content::text(format!("{BEGINNING}{}", rest()))));

    // Both feeds together are the log.
    let all = SessionFrames { session: session(), from: Seq(0), to: None, kinds: Vec::new(), limit: None };
    let stored = second.client.frames(all.clone()).await.unwrap();
    let followed: Vec<Frame> = first.frames.iter().chain(&second.frames).cloned().collect();
    assert_eq!(followed, stored);
    assert_eq!(third.frames, stored[1..]);
    reads_back(&second.client, all, end.ended).await;
    runtime.stop("the test is over").await.unwrap();
}

/// What a client looks up once a turn is over.
async fn reads_back(client: &Client, all: SessionFrames, ended: Seq) {
    // A value that is too long for a frame.
    let last = client.frames(SessionFrames { from: ended, ..all.clone() }).await.unwrap().pop().unwrap();
    assert!(last.body.as_ref().unwrap()["answer"]["blob"].is_object());
    let Body::TurnEnded(body) = client.body(&last).await.unwrap() else { panic!("{last:?}") };
    assert_eq!(body.answer.unwrap().to_text(), format!("{BEGINNING}{}", rest()));
    // Why a call ran: who decided, and what it gave.
    let kinds = vec![FrameKind::ToolDecided, FrameKind::ApprovalAnswered, FrameKind::ToolReturned];
    let why = client.frames(SessionFrames { kinds, ..all.clone() }).await.unwrap();
    let kinds: Vec<&str> = why.iter().map(|frame| frame.envelope.kind.as_str()).collect();
    assert_eq!(
        kinds,
        ["tool.decided", "approval.answered", "tool.returned", "tool.decided", "tool.returned"]
    );
    let Body::ToolReturned(gave) = client.body(why.last().unwrap()).await.unwrap() else { panic!("{why:?}") };
    assert_eq!(gave.outcome, ToolOutcome::Result(Content::text("red")));
    // A page at a time.
    let page = client.frames(SessionFrames { limit: Some(3), ..all.clone() }).await.unwrap();
    assert_eq!(page.len() as u64, ended.next().0);
    // How the turn ended, and which sessions there are.
    let turn = SessionMethod::Turn(SessionTurn { session: all.session.clone(), ended });
    let details: TurnDetails = client.ask(&turn).await.unwrap();
    assert_eq!(details.outcome, TurnOutcome::Answered);
    let list = SessionMethod::List(SessionList::default());
    let sessions: Vec<SessionSummary> = client.ask(&list).await.unwrap();
    let names: Vec<(&str, &str)> =
        sessions.iter().map(|it| (it.session.as_str(), it.about.as_str())).collect();
    assert_eq!(names, [("talk", "Save it.")]);
}
