//! What must hold of every recorded session, whatever happened in it: it verifies, it replays, and its frames keep the rules
//! below, which are written down here a second time, away from the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use holdfast_contract::body::{Body, FrameOrigin};
use holdfast_contract::content::load_references;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::{Frame, FrameSource};
use holdfast_contract::hook::HookPoint;
use holdfast_contract::ids::{CallId, HookId, Seq, StreamId};
use holdfast_contract::message::LimitKind;
use holdfast_contract::session_frames::{Answer, ToolVerdict, TurnOutcome};
use holdfast_contract::wire::Lane;
use holdfast_kernel::HookAnswers;
use holdfast_replay::verify;
use holdfast_replay::{Mode, replay};
use holdfast_store::Store;
use serde_json::Value;

use super::tools::ONCE;
use super::world::World;

/// What was met, to show that the generator reaches everything it should.
#[derive(Debug, Default)]
pub struct Tally {
    pub sessions: u64,
    pub frames: u64,
    pub met: BTreeMap<String, u64>,
}

impl Tally {
    fn meet(&mut self, what: impl Into<String>) {
        *self.met.entry(what.into()).or_default() += 1;
    }

    /// Adds another's.
    pub fn add(&mut self, other: Tally) {
        self.sessions += other.sessions;
        self.frames += other.frames;
        for (what, count) in other.met {
            *self.met.entry(what).or_default() += count;
        }
    }
}

/// Checks everything that a world has recorded. The error names the session and shows its story.
pub fn world(world: &World) -> Result<Tally, String> {
    let store = world.store();
    let findings = verify(&store, None).map_err(|problem| problem.to_string())?.findings;
    if let Some(finding) = findings.first() {
        return Err(format!("verify: {finding:#?}\n{}", story(&store, &finding.stream)));
    }
    let lanes = world.lanes();
    let mut tally = Tally::default();
    for info in store.streams().unwrap() {
        let told = |why: String| format!("{}: {why}\n{}", info.id, story(&store, &info.id));
        replays(&store, &info.id, &lanes).map_err(told)?;
        if info.id.is_session() {
            let frames = store.frames(&info.id, ..).unwrap();
            session(&frames, &mut tally).map_err(told)?;
            tally.sessions += 1;
            tally.frames += frames.len() as u64;
        }
        tally.meet(format!("snapshot {}", store.latest_snapshot(&info.id).unwrap().is_some()));
    }
    ran_once(world, &store)?;
    Ok(tally)
}

/// Both ways of replay give the same frames and the same state.
pub fn replays(store: &Store, stream: &StreamId, lanes: &[Arc<dyn Lane>]) -> Result<(), String> {
    for mode in [Mode::Strict, Mode::Mock] {
        let verdict = replay(store, stream, mode, lanes).map_err(|problem| format!("{mode:?}: {problem}"))?;
        if !verdict.identical || !verdict.snapshot_identical {
            return Err(format!("{mode:?}: {verdict:#?}"));
        }
    }
    Ok(())
}

fn story(store: &Store, stream: &StreamId) -> String {
    brief(&store.frames(stream, ..).unwrap_or_default())
}

/// A story whose lines fit a screen.
pub fn brief(frames: &[Frame]) -> String {
    let story = holdfast_testkit::story::story(frames);
    story.lines().map(|line| line.chars().take(230).chain(['\n']).collect::<String>()).collect()
}

/// The witness outside the log: no tool with a side effect ran twice, and none ran without its frame.
fn ran_once(world: &World, store: &Store) -> Result<(), String> {
    let mut ran: BTreeMap<String, u64> = BTreeMap::new();
    for line in world.ledger.lines() {
        if ONCE.iter().any(|name| line.starts_with("tool ") && line.ends_with(&format!(" {name}"))) {
            *ran.entry(line).or_default() += 1;
        }
    }
    for (line, times) in ran {
        let words: Vec<&str> = line.split(' ').collect();
        let frames = store.frames(&words[1].into(), ..).unwrap();
        let dispatched = frames.iter().any(
            |frame| matches!(read(frame), Body::ToolDispatched(body) if body.call.to_string() == words[2]),
        );
        if times > 1 || !dispatched {
            return Err(format!("`{line}` ran {times} times; its frame is there: {dispatched}"));
        }
    }
    Ok(())
}

/// What a frame says. Large values in it are not looked at here, so they are not loaded.
fn read(frame: &Frame) -> Body {
    let mut json = frame.body.clone().unwrap();
    load_references(&mut json, &mut |_| Ok::<_, Infallible>(Value::Null)).unwrap();
    Body::read(frame.envelope.kind, json).unwrap()
}

/// A call as its frames have shown it so far.
#[derive(Default)]
struct Call {
    allowed: bool,
    dispatched: Option<Seq>,
    attempts: u32,
    settled: bool,
}

/// What a session's frames have shown so far.
#[derive(Default)]
struct Walk {
    fact: Seq,
    turn: u32,
    open: bool,
    /// The turn's last hooks are being asked: how it ends is settled.
    closing: bool,
    /// A compaction that was asked for between turns is under way. It has the time that a turn has.
    compacting: bool,
    over: bool,
    limited: Option<LimitKind>,
    resumed: Seq,
    calls: BTreeMap<CallId, Call>,
    rounds: BTreeMap<Seq, (BTreeSet<HookId>, BTreeSet<HookId>)>,
    waiting: BTreeSet<Seq>,
}

/// Checks one session's frames.
fn session(frames: &[Frame], tally: &mut Tally) -> Result<(), String> {
    let mut walk = Walk::default();
    let mut before: Option<&Frame> = None;
    for (place, frame) in frames.iter().enumerate() {
        let told = |why: &str| format!("frame {place}, {}: {why}", frame.envelope.kind);
        chain(place, frame, before).map_err(told)?;
        let body = read(frame);
        walk.envelope(frame)
            .and_then(|()| walk.see(frame.envelope.seq, &frame.envelope.cause, &body))
            .map_err(|why| told(&why))?;
        meet(&body, tally);
        before = Some(frame);
    }
    Ok(())
}

/// Gap-free, hashed, in time.
fn chain(place: usize, frame: &Frame, before: Option<&Frame>) -> Result<(), &'static str> {
    let envelope = &frame.envelope;
    let holds = [
        (envelope.seq == Seq(place as u64), "out of sequence"),
        (envelope.prev == before.map(|before| before.hash).unwrap_or_default(), "not chained"),
        (envelope.hash().is_ok_and(|hash| hash == frame.hash), "not hashed"),
        (Digest::of_json(&frame.body).is_ok_and(|digest| digest == envelope.body_digest), "another body"),
        (before.is_none_or(|before| before.envelope.at <= envelope.at), "time runs backwards"),
    ];
    holds.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, why)| Err(why))
}

fn ensure(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_owned()) }
}

impl Walk {
    /// Decisions are the kernel's and follow from the last fact; facts are anybody else's.
    fn envelope(&mut self, frame: &Frame) -> Result<(), String> {
        let envelope = &frame.envelope;
        let kernel = envelope.source == FrameSource::Kernel;
        match envelope.kind.origin() {
            FrameOrigin::Decision => {
                ensure(kernel && envelope.cause == Some(self.fact), "not a decision on the last fact")
            }
            FrameOrigin::Fact => {
                self.fact = envelope.seq;
                ensure(
                    !kernel && envelope.cause.is_none_or(|cause| cause < envelope.seq),
                    "not a fact from outside",
                )
            }
        }
    }

    fn see(&mut self, seq: Seq, cause: &Option<Seq>, body: &Body) -> Result<(), String> {
        match body {
            Body::SessionStarted(_) => ensure(seq == Seq(0), "a session starts once")?,
            _ => ensure(seq > Seq(0), "a session starts with its start")?,
        }
        match body {
            Body::InputReceived(_) => {
                ensure(!self.open && !self.over, "input within a turn or after the end")
            }
            Body::SessionEnded(_) => {
                self.over = true;
                ensure(!self.open, "the session ends within a turn")
            }
            Body::SessionResumed(_) => {
                self.resumed = seq;
                Ok(())
            }
            Body::TurnStarted(body) => {
                self.turn += 1;
                let fits = !self.open && body.turn == self.turn;
                (self.open, self.closing) = (true, false);
                ensure(fits, "turns do not alternate")
            }
            Body::TurnEnded(body) => self.turn_ended(body.turn, &body.outcome),
            Body::LimitReached(body) => {
                if self.open && !self.closing {
                    self.limited = Some(body.limit);
                }
                ensure(self.open || std::mem::take(&mut self.compacting), "a limit outside a turn")
            }
            Body::HookCalled(body) => {
                self.closing |= matches!(body.point, HookPoint::TurnEnd | HookPoint::SessionCancel);
                self.rounds.insert(seq, (body.hooks.iter().cloned().collect(), BTreeSet::new()));
                Ok(())
            }
            Body::HookAgreed(_) | Body::HookDecided(_) | Body::HookFaulted(_) => {
                let hooks = HookAnswers::of(body).map(|answers| answers.hooks).unwrap_or_default();
                hooks.iter().try_for_each(|hook| self.answered(cause, hook))
            }
            Body::ModelRequested(_) | Body::ApprovalRequested(_) | Body::CompactionStarted(_) => {
                self.compacting |= !self.open;
                self.waiting.insert(seq);
                Ok(())
            }
            Body::ModelReturned(_) | Body::ModelFailed(_) | Body::CompactionProvided(_) => {
                ensure(cause.is_some_and(|cause| self.waiting.remove(&cause)), "an answer to no question")
            }
            body => self.call(seq, cause, body),
        }
    }

    fn turn_ended(&mut self, turn: u32, outcome: &TurnOutcome) -> Result<(), String> {
        ensure(self.open && turn == self.turn, "turns do not alternate")?;
        self.open = false;
        ensure(self.calls.values().all(|call| call.settled), "the turn ends before its calls are settled")?;
        match self.limited.take() {
            Some(limit) => {
                ensure(*outcome == TurnOutcome::Limited(limit), "a limit that does not end the turn")
            }
            None => {
                ensure(!matches!(outcome, TurnOutcome::Limited(_)), "ended by a limit that was not reached")
            }
        }
    }

    fn answered(&mut self, cause: &Option<Seq>, hook: &HookId) -> Result<(), String> {
        let round = cause.and_then(|cause| self.rounds.get_mut(&cause)).ok_or("an answer to no round")?;
        ensure(
            round.0.contains(hook) && round.1.insert(hook.clone()),
            "a hook that was not asked, or answers twice",
        )
    }

    fn call(&mut self, seq: Seq, cause: &Option<Seq>, body: &Body) -> Result<(), String> {
        if let Body::ToolCalled(body) = body {
            return ensure(
                self.open && self.calls.insert(body.call, Call::default()).is_none(),
                "called twice",
            );
        }
        if let Body::ApprovalAnswered(body) = body {
            let asked = self.waiting.remove(&body.approval);
            return ensure(asked && *cause == Some(body.approval), "an answer to no question");
        }
        let id = match body {
            Body::ToolChecked(body) => body.call,
            Body::ToolDecided(body) => body.call,
            Body::ToolDispatched(body) => body.call,
            Body::ToolReturned(body) => body.call,
            Body::ToolSettled(body) => body.call,
            Body::ApprovalRequested(body) => body.call,
            Body::ChildOpened(body) => body.call,
            Body::ChildEnded(body) => body.call,
            _ => return Ok(()),
        };
        if matches!(body, Body::ToolSettled(_)) && self.limited == Some(LimitKind::ToolCalls) {
            // Calls past the limit are settled without ever having been taken up.
            self.calls.entry(id).or_default();
        }
        let call = self.calls.get_mut(&id).ok_or("a call that nobody made")?;
        ensure(!call.settled, "a call goes on after it was settled")?;
        match body {
            Body::ToolDecided(body) => call.allowed = body.verdict != ToolVerdict::Asked || call.allowed,
            Body::ToolSettled(_) => call.settled = true,
            Body::ToolReturned(_) => ensure(*cause == call.dispatched, "returned from no dispatch")?,
            Body::ChildEnded(_) => ensure(*cause == call.dispatched, "ended without having been opened")?,
            Body::ToolDispatched(body) => {
                let again = call.dispatched.is_some();
                ensure(
                    !again
                        || (body.effects.may_run_again()
                            && self.resumed > call.dispatched.unwrap_or_default()),
                    "run again",
                )?;
                call.attempts += 1;
                ensure(body.attempt == call.attempts, "attempts are not numbered")?;
                call.dispatched = Some(seq);
            }
            Body::ChildOpened(_) => {
                ensure(call.dispatched.is_none(), "opened twice")?;
                call.dispatched = Some(seq);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Notes what was met.
fn meet(body: &Body, tally: &mut Tally) {
    tally.meet(body.kind().as_str());
    match body {
        Body::HookCalled(body) => tally.meet(format!("point {:?}", body.point)),
        Body::StreamGuarded(_) => tally.meet(format!("point {:?}", HookPoint::GuardChunk)),
        Body::HookDecided(body) if body.hook.is_policy() => {
            tally.meet(format!("policy {}", word(&body.decision)))
        }
        Body::HookDecided(body) => tally.meet(format!("decision {}", word(&body.decision))),
        Body::HookFaulted(body) => {
            let panicked = if body.fault.message.starts_with("panicked") { " panic" } else { "" };
            tally.meet(format!("fault {}{panicked}", body.fault.code));
        }
        Body::TurnEnded(body) => tally.meet(format!("outcome {}", word(&body.outcome))),
        Body::LimitReached(body) => tally.meet(format!("limit {:?}", body.limit)),
        Body::ToolSettled(body) => tally.meet(format!("status {:?}", body.status)),
        Body::ToolDispatched(body) => tally.meet(format!("effects {:?}", body.effects)),
        Body::ToolChecked(body) => tally.meet(format!("check {}", word(&body.outcome))),
        Body::ApprovalAnswered(body) => tally.meet(match &body.answer {
            Answer::Approve { scope } => format!("answer {scope:?}"),
            answer => format!("answer {}", word(answer)),
        }),
        _ => {}
    }
}

/// The name of a variant.
fn word(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.chars().take_while(|letter| letter.is_alphanumeric()).collect()
}

/// Everything that a thousand sessions must have met.
pub fn expected() -> Vec<String> {
    let points = HookPoint::ALL.iter();
    let words = "decision: Allow Deny Ask Modify Replace Enrich Inject Route Flag Block Continue Compact
        policy: Allow Ask
        fault: HF-3201 HF-3203 HF-4003
        outcome: Answered Cancelled Limited Blocked Failed
        limit: Turns Tokens Time Cost ToolCalls SessionTokens SessionCost
        status: Done Failed Denied Cancelled Interrupted
        effects: Pure Read Write Exec Network Unknown
        check: Valid Coerced Invalid
        answer: Once Session Edit Deny";
    let listed = words
        .lines()
        .filter_map(|line| line.trim().split_once(": "))
        .flat_map(|(group, members)| members.split(' ').map(move |member| format!("{group} {member}")));
    let kinds = "session.resumed session.cancelled session.ended input.normalised context.injected message.injected
        model.failed stream.interrupted guard.verdict ui.requested ui.answered state.written child.opened child.ended
        compaction.provided compaction.applied clock.read random.drawn host.called timer.fired";
    let kinds = kinds.split_whitespace().map(str::to_owned);
    points.map(|point| format!("point {point:?}")).chain(listed).chain(kinds).collect()
}
