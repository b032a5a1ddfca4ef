//! Extensions of one line each for what lives on the bus.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::channel_question::ChannelQuestion;
use holdfast_contract::content::Content;
use holdfast_contract::frame::Frame;
use holdfast_contract::hook::Artifact;
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::tool::{EffectClass, ToolOutcome, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Channel, Subscriber, Tool, now};
use holdfast_runtime::Runtime;
use holdfast_testkit::Lab;
use holdfast_testkit::lab::TIMEOUT;
use holdfast_testkit::pieces::spec;
use serde_json::{Value, json};

/// A tool that asks the host for something by name, and answers with what it is answered.
pub struct Asking(pub &'static str, pub &'static str);

impl Tool for Asking {
    fn spec(&self) -> ToolSpec {
        spec(self.0, EffectClass::Write)
    }

    fn call(
        &self,
        _: CallId,
        arguments: Content,
        _: TurnView,
        host: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        host.call(HostCall::named(self.1, arguments))
    }
}

/// Takes events and keeps them. Fails so many times first.
#[derive(Clone, Default)]
pub struct Takes {
    pub taken: Arc<Mutex<Vec<Value>>>,
    pub failures: Arc<AtomicUsize>,
}

impl Takes {
    pub fn failing(times: usize) -> Self {
        let takes = Self::default();
        takes.failures.store(times, Ordering::SeqCst);
        takes
    }

    pub fn all(&self) -> Vec<Value> {
        self.taken.lock().unwrap().clone()
    }
}

impl Subscriber for Takes {
    fn on_event(&self, event: Content, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        self.taken.lock().unwrap().push(event.value().clone());
        let fails =
            self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        now(match fails {
            Ok(_) => Err(Fault::new(Code::ToolFailed, "not today")),
            Err(_) => Ok(()),
        })
    }
}

/// A channel that keeps what it is given: `ada: hello`, or `*: hello` where no user is named.
#[derive(Clone, Default)]
pub struct Mailbox {
    pub sent: Arc<Mutex<Vec<String>>>,
    pub proactive: bool,
    /// Whether it takes what it is given and never says so.
    pub silent: bool,
    /// Whether it sends files: `ada: chart.png (image/png, 6 bytes)`.
    pub files: bool,
    /// Whether it shows questions with choices: `ada: Sure? [yes=yes 7K3F2Q, no=no 7K3F2Q]`.
    pub questions: bool,
}

impl Mailbox {
    pub fn all(&self) -> Vec<String> {
        self.sent.lock().unwrap().clone()
    }

    fn keep(&self, user: &str, text: &str, delivery: &Content) -> Later<Result<(), Fault>> {
        let delivery = delivery.value().clone();
        assert!(delivery["id"].as_str().unwrap().starts_with("bus."));
        let repeat = if delivery["repeat"] == json!(true) { " (repeat)" } else { "" };
        self.sent.lock().unwrap().push(format!("{user}: {text}{repeat}"));
        if self.silent { Box::pin(std::future::pending()) } else { now(Ok(())) }
    }
}

impl Channel for Mailbox {
    fn send_to_user(
        &self,
        user: String,
        text: String,
        delivery: Content,
        _: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>> {
        self.keep(&user, &text, &delivery)
    }

    fn has_messages(&self) -> bool {
        self.proactive
    }

    fn send_message(&self, text: String, delivery: Content, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        self.keep("*", &text, &delivery)
    }

    fn has_files(&self) -> bool {
        self.files
    }

    fn send_file(
        &self,
        user: Option<String>,
        file: Artifact,
        delivery: Content,
        _: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>> {
        self.keep(user.as_deref().unwrap_or("*"), &file.to_string(), &delivery)
    }

    fn has_questions(&self) -> bool {
        self.questions
    }

    fn send_question(
        &self,
        question: ChannelQuestion,
        delivery: Content,
        _: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>> {
        let ChannelQuestion { user, text, choices } = question;
        let choices: Vec<String> =
            choices.into_iter().map(|choice| format!("{}={}", choice.label, choice.answer)).collect();
        self.keep(&user, &format!("{text} [{}]", choices.join(", ")), &delivery)
    }
}

/// The frames of the bus as lines: `event.published reminder.due`, `event.delivered list/reminder.due`.
pub fn bus_story(runtime: &Runtime) -> Vec<String> {
    runtime.store().flush().unwrap();
    let mut lines = Vec::new();
    for stream in holdfast_bus::streams() {
        let frames = runtime.store().frames(&stream, ..).unwrap();
        lines.extend(frames.iter().map(|frame| line(runtime, frame)));
    }
    lines
}

/// Why events were delivered again.
pub fn retry_codes(runtime: &Runtime) -> Vec<Code> {
    runtime.store().flush().unwrap();
    let streams = holdfast_bus::streams();
    let frames = streams.flat_map(|stream| runtime.store().frames(&stream, ..).unwrap());
    let code = |frame: Frame| match runtime.store().body(&frame).unwrap() {
        Body::EventRetried(body) => Some(body.fault.code),
        _ => None,
    };
    frames.filter_map(code).collect()
}

fn line(runtime: &Runtime, frame: &Frame) -> String {
    let kind = frame.envelope.kind;
    match runtime.store().body(frame).unwrap() {
        Body::EventPublished(body) => format!("{kind} {}", body.topic),
        Body::EventDelivered(body) => format!("{kind} {}", body.subscriber),
        Body::EventRetried(body) => format!("{kind} {} after {}", body.subscriber, body.attempt),
        Body::EventDead(body) => format!("{kind} {} after {}", body.subscriber, body.attempts),
        Body::EventDiscarded(body) => format!("{kind} {}", body.subscriber),
        _ => kind.to_string(),
    }
}

/// Waits for something. Time passes while nothing is being recorded, so that retries happen and no caller that
/// is only slow runs out of time.
pub async fn later(lab: &Lab, what: &str, holds: impl FnMut(&Lab) -> bool) {
    later_by(lab, Millis(500), what, holds).await;
}

/// The same with another span that passes at a time.
pub async fn later_by(lab: &Lab, span: Millis, what: &str, mut holds: impl FnMut(&Lab) -> bool) {
    let recorded = || lab.runtime.store().streams().unwrap().iter().map(|stream| stream.frames).sum::<u64>();
    let (mut before, mut still) = (recorded(), 0);
    let deadline = Instant::now() + TIMEOUT;
    while !holds(lab) {
        assert!(
            Instant::now() < deadline,
            "{what} did not come about; the bus so far:\n{}",
            bus_story(&lab.runtime).join("\n")
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
        let now = recorded();
        still = if now == before { still + 1 } else { 0 };
        before = now;
        // Slowly enough for a busy machine: half a second of the clock takes several times as long as an ordinary step.
        if still >= 5 {
            lab.clock.advance(span);
            still = 0;
        }
    }
}

/// What a session was told by its users, in order.
pub fn inputs(lab: &Lab, session: &str) -> Vec<String> {
    let frames = lab.frames_of(session);
    let inputs = frames.iter().filter(|frame| frame.envelope.kind == FrameKind::InputReceived);
    inputs
        .map(|frame| match lab.runtime.store().body(frame).unwrap() {
            Body::InputReceived(input) => input.text.to_text(),
            _ => String::new(),
        })
        .collect()
}

/// What the lab's session's tools came to, in the order of the calls.
pub fn outcomes(lab: &Lab) -> Vec<Result<Value, Fault>> {
    outcomes_of(lab, "s1")
}

/// What a session's tools came to, in the order of the calls.
pub fn outcomes_of(lab: &Lab, session: &str) -> Vec<Result<Value, Fault>> {
    let frames = lab.frames_of(session);
    let bodies = frames.iter().map(|frame| lab.runtime.store().body(frame).unwrap());
    let mut returned: Vec<_> = bodies
        .filter_map(|body| match body {
            Body::ToolReturned(fact) => Some((fact.call, fact.outcome)),
            _ => None,
        })
        .collect();
    returned.sort_by_key(|(call, _)| *call);
    let outcome = |outcome| match outcome {
        ToolOutcome::Result(content) => Ok(content.value().clone()),
        ToolOutcome::Failure(fault) => Err(fault),
    };
    returned.into_iter().map(|(_, it)| outcome(it)).collect()
}
