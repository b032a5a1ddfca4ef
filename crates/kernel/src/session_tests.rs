//! The session machine at every stage: cancelled, resumed, out of time, and told anything at all. The scene plays everyone whom the
//! machine asks; golden scenarios of whole sessions are in `tests/`.

use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::digest::Digest;
use holdfast_contract::effect::*;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::ids::*;
use holdfast_contract::message::*;
use holdfast_contract::names::Overrides;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::*;
use holdfast_contract::session_frames::*;
use holdfast_contract::tool::{EffectClass, ToolOutcome, ToolSpec};

use crate::Session;
use crate::registry::{self, RegisteredDescriptor};

/// A session and the acts that wait for an answer, each with the frame that decided it.
#[derive(Clone)]
struct Scene {
    session: Session,
    at: Millis,
    open: Vec<(Seq, Act)>,
    timer: Option<Seq>,
    frames: Vec<Body>,
    ended: Option<TurnOutcome>,
    /// What the policy says of every call.
    policy: Decision,
}

fn reference(id: &str, content: &str) -> Arc<ExtensionRef> {
    Arc::new(ExtensionRef {
        id: id.into(),
        digest: Digest::of(content.as_bytes()),
        ..ExtensionRef::default()
    })
}

/// A registry with the tools `pure` and `write`, the agent `helper`, and a hook at each of these points.
fn registry(content: &str, points: &[HookPoint]) -> RegistryPin {
    let kit = reference("kit", content);
    let effects = [("pure", EffectClass::Pure), ("write", EffectClass::Write)];
    let tools = effects
        .map(|(name, effects)| Descriptor::tool(ToolSpec { effects, ..ToolSpec::named(name, "A tool.") }));
    let helper = AgentSpec { instructions: "Help.".into(), ..AgentSpec::named("helper", "An agent.") };
    let hooks = points.iter().enumerate();
    let hooks = hooks.map(|(index, point)| Descriptor::hook(&"kit".into(), index, HookSpec::at(*point)));
    let descriptors: Vec<_> = tools.into_iter().chain([Descriptor::agent(helper)]).chain(hooks).collect();
    let registered = descriptors.iter().map(|descriptor| RegisteredDescriptor {
        extension: &kit,
        descriptor,
        order: None,
        priority: None,
        registered: 0,
    });
    let (registry, _) = registry::build(None, &Overrides::default(), registered);
    RegistryPin::new(RegistryRef::default(), Arc::new(registry))
}

fn says(registry: RegistryPin) -> InputReceived {
    InputReceived { text: "go".into(), attachments: Vec::new(), message_id: None, registry }
}

fn gives(calls: &[&str]) -> ModelReturned {
    let asked = |tool: &&str| AskedCall { model_id: "1".into(), tool: (*tool).into(), arguments: "x".into() };
    let calls = calls.iter().map(asked).collect();
    ModelReturned { text: "said".into(), reasoning: None, calls, usage: Usage::default() }
}

impl Scene {
    fn started(limits: Limits) -> Self {
        let (session, policy) = (Session::new("s".into()), Decision::Allow);
        let (open, frames) = (Vec::new(), Vec::new());
        let mut scene = Self { session, at: Millis(0), open, timer: None, frames, ended: None, policy };
        let settings = SessionSettings { models: vec!["m".into()], limits, ..SessionSettings::default() };
        scene.tell(None, SessionStarted { settings: settings.into(), ..SessionStarted::default() });
        scene
    }

    /// Tells the machine something; false if it refuses.
    fn tell(&mut self, cause: Option<Seq>, body: impl Into<Body>) -> bool {
        let before = self.session.next_seq();
        let input = Input { at: self.at, source: FrameSource::Host, cause, body: body.into() };
        let Ok(Effects { frames, acts }) = self.session.step(input) else {
            assert_eq!(self.session.next_seq(), before, "a refused fact gets no number");
            return false;
        };
        self.frames.extend(frames.into_iter().map(|draft| draft.body));
        for act in acts {
            match act {
                Act::SetTimer { decided_by, .. } => self.timer = Some(decided_by),
                Act::Abort { begun_by } => self.open.retain(|(seq, _)| *seq != begun_by),
                Act::Deliver { outcome, .. } => self.ended = Some(outcome),
                Act::CallHooks(round) => {
                    let RoundAct { decided_by, input, hooks } = *round;
                    let alone = |hook: &HookEntry| {
                        let input = HookInput { hook: hook.id.clone(), ..input.clone() };
                        let (entries, ids) = (Arc::from([hook.clone()]), Arc::from([hook.id.clone()]));
                        let hooks = AskedHooks { entries, ids };
                        (decided_by, Act::CallHooks(Box::new(RoundAct { decided_by, input, hooks })))
                    };
                    self.open.extend(hooks.entries.iter().map(alone));
                }
                act => self.open.push((decided_by(&act), act)),
            }
        }
        true
    }

    /// Answers the act at this place.
    fn answer(&mut self, place: usize) -> bool {
        let (seq, act) = self.open.remove(place);
        let answer = self.answer_to(act);
        self.tell(Some(seq), answer)
    }

    fn answer_to(&self, act: Act) -> Body {
        let result = ToolOutcome::Result("done".into());
        match act {
            Act::CallHooks(act) => {
                let HookInput { hook, point, call, .. } = act.input;
                let (decision, call) = (point.consent().clone(), call.map(|call| call.id));
                HookDecided { hook, point, call, subject: None, decision, rule: None }.into()
            }
            Act::EvaluatePolicy(act) => {
                let (hook, point, decision) = (HookId::policy(), HookPoint::ToolGate, self.policy.clone());
                HookDecided { hook, point, call: Some(act.call), subject: None, decision, rule: None }.into()
            }
            Act::CheckArguments(act) => ToolChecked { call: act.call, outcome: CheckOutcome::Valid }.into(),
            Act::Dispatch(act) => ToolReturned { call: act.call, outcome: result }.into(),
            Act::CallModel(act) if matches!(act.messages.last(), Some(Message::User { .. })) => {
                gives(&["pure", "write", "helper"]).into()
            }
            Act::CallModel(_) => gives(&[]).into(),
            Act::AskApproval(act) => {
                let answer = Answer::Approve { scope: ApprovalScope::Once };
                ApprovalAnswered { approval: act.decided_by, answer }.into()
            }
            Act::OpenChild(act) => {
                let (call, child, spent) = (act.call, act.child, Spent::default());
                ChildEnded { call, child, outcome: result, spent }.into()
            }
            Act::Summarise(_) => CompactionProvided { outcome: result, usage: Usage::default() }.into(),
            other => panic!("{other:?} needs no answer"),
        }
    }

    /// Answers everyone until nobody asks, and gives the scene before each answer.
    fn play(&mut self) -> Vec<Scene> {
        let mut before = Vec::new();
        while !self.open.is_empty() {
            before.push(self.clone());
            assert!(self.answer(0), "{:?}", self.session);
        }
        before
    }

    /// Answers everyone of this kind once.
    fn answer_all(&mut self, is: fn(&Act) -> bool) {
        while let Some(place) = self.open.iter().position(|(_, act)| is(act)) {
            self.answer(place);
        }
    }

    fn kinds(&self) -> Vec<&'static str> {
        self.frames.iter().map(|body| body.kind().as_str()).collect()
    }
}

fn decided_by(act: &Act) -> Seq {
    match act {
        Act::CallHooks(act) => act.decided_by,
        Act::EvaluatePolicy(act) | Act::CheckArguments(act) | Act::Dispatch(act) => act.decided_by,
        Act::CallModel(act) => act.decided_by,
        Act::AskApproval(act) => act.decided_by,
        Act::OpenChild(act) => act.decided_by,
        Act::Summarise(act) => act.decided_by,
        Act::AskUi { decided_by, .. } => *decided_by,
        other => panic!("{other:?} is not of a session"),
    }
}

/// A turn with a hook at every point, three calls and their approvals, before each answer that it gets.
fn every_stage() -> Vec<Scene> {
    let mut scene = Scene::started(Limits::default());
    scene.policy = Decision::Ask { reason: "sure?".into() };
    scene.tell(None, says(registry("1", HookPoint::ALL)));
    let stages = scene.play();
    assert_eq!(scene.ended, Some(TurnOutcome::Answered));
    assert!(stages.len() >= 40, "{}", stages.len());
    stages
}

#[test]
fn a_turn_can_be_cancelled_at_every_stage() {
    for mut scene in every_stage() {
        let closing = scene.kinds().contains(&"model.returned") && scene.open.len() == 1;
        assert!(scene.tell(None, SessionCancelled { reason: "enough".into() }));
        scene.play();
        assert!(!scene.session.is_busy(), "{:?}", scene.session);
        let cancelled = scene.ended == Some(TurnOutcome::Cancelled { reason: "enough".into() });
        assert!(cancelled || closing, "{:?}", scene.ended);
        let opened = scene.kinds().iter().filter(|kind| **kind == "tool.called").count();
        let settled = scene.kinds().iter().filter(|kind| **kind == "tool.settled").count();
        assert_eq!(opened, settled, "no call is left open");
    }
}

#[test]
fn a_turn_can_run_out_of_time_at_every_stage_except_while_a_person_is_asked() {
    for mut scene in every_stage() {
        let asking = scene.open.iter().any(|(_, act)| matches!(act, Act::AskApproval(_)));
        let timer = scene.timer.unwrap();
        assert!(scene.tell(None, TimerFired { timer }));
        assert!(!scene.tell(None, TimerFired { timer }), "a timer fires once");
        let limited = scene.kinds().contains(&"limit.reached");
        assert_eq!(limited, !asking);
        scene.play();
        assert!(!scene.session.is_busy());
    }
}

#[test]
fn a_turn_can_be_resumed_at_every_stage() {
    for mut scene in every_stage() {
        // The process is gone, and with it the surface that was asked.
        scene.open.clear();
        assert!(scene.tell(None, SessionResumed { reason: "crash".into() }));
        scene.play();
        assert_eq!(scene.ended, Some(TurnOutcome::Answered));
        let begun = scene.frames.iter().filter(|body| match body {
            Body::ToolDispatched(it) => it.effects == EffectClass::Write,
            _ => false,
        });
        assert!(begun.count() <= 1, "what has an effect runs once");
    }
}

#[test]
fn answers_that_came_too_late_are_refused() {
    let stages = every_stage();
    let mut over = stages.last().unwrap().clone();
    over.play();
    for scene in stages {
        let (seq, act) = scene.open[0].clone();
        let answer = scene.answer_to(act);
        assert!(!over.tell(Some(seq), answer.clone()), "the turn is over");
        let mut again = scene.clone();
        again.answer(0);
        assert!(!again.tell(Some(seq), answer), "an answer counts once");
    }
}

/// A call of `pure` whose policy has allowed it, with four gates that wait. Gives the scene, the round and the gates.
fn at_four_gates() -> (Scene, Seq, CallId, Vec<HookId>) {
    let mut scene = Scene::started(Limits::default());
    scene.tell(None, says(registry("1", &[HookPoint::ToolGate; 4])));
    let (asked, _) = scene.open.remove(0);
    scene.tell(Some(asked), gives(&["pure"]));
    scene.answer_all(|act| matches!(act, Act::CheckArguments(_) | Act::EvaluatePolicy(_)));
    let gates = scene.open.iter().map(|(_, act)| match act {
        Act::CallHooks(act) => act.input.hook.clone(),
        other => panic!("{other:?}"),
    });
    let (gates, round) = (gates.collect(), scene.open[0].0);
    (scene, round, CallId { turn: 1, index: 1 }, gates)
}

fn agreed(call: CallId, gates: &[&HookId]) -> HookAgreed {
    let hooks = gates.iter().map(|gate| (*gate).clone()).collect();
    HookAgreed { point: HookPoint::ToolGate, call: Some(call), subject: None, hooks }
}

#[test]
fn hooks_that_agree_count_like_hooks_that_speak_one_by_one() {
    let (mut scene, round, call, gates) = at_four_gates();
    assert!(scene.tell(Some(round), agreed(call, &[&gates[0], &gates[2]])));
    assert!(!scene.kinds().contains(&"tool.decided"), "two have not spoken");
    assert!(scene.tell(Some(round), agreed(call, &[&gates[1], &gates[3]])));
    assert!(scene.kinds().contains(&"tool.dispatched"));

    let (mut scene, round, call, gates) = at_four_gates();
    assert!(scene.tell(Some(round), agreed(call, &[&gates[1], &gates[2], &gates[3]])));
    let (hook, decision) = (gates[0].clone(), Decision::Deny { reason: "no".into() });
    let (point, call) = (HookPoint::ToolGate, Some(call));
    assert!(scene.tell(Some(round), HookDecided { hook, point, call, subject: None, decision, rule: None }));
    assert!(!scene.kinds().contains(&"tool.dispatched"), "deny wins");
}

#[test]
fn hooks_that_agree_out_of_turn_change_nothing() {
    let (mut scene, round, call, gates) = at_four_gates();
    let [a, b, c, _] = &gates[..] else { panic!("{gates:?}") };
    let before = format!("{:?}", scene.session);
    let stranger = HookId::from("stranger/0");
    for hooks in [&[][..], &[a, &stranger], &[b, a], &[a, a], &[a, b, c, c]] {
        assert!(!scene.tell(Some(round), agreed(call, hooks)), "{hooks:?}");
        assert_eq!(format!("{:?}", scene.session), before);
    }
    assert!(!scene.tell(Some(Seq(0)), agreed(call, &[a])), "another round");
    assert!(scene.tell(Some(round), agreed(call, &[a])));
    assert!(!scene.tell(Some(round), agreed(call, &[a])), "each counts once");
}

#[test]
fn the_policy_never_just_agrees() {
    let mut scene = Scene::started(Limits::default());
    scene.tell(None, says(registry("1", &[HookPoint::ToolGate])));
    let (asked, _) = scene.open.remove(0);
    scene.tell(Some(asked), gives(&["pure"]));
    scene.answer_all(|act| matches!(act, Act::CheckArguments(_)));
    let (round, call) = (scene.open[0].0, CallId { turn: 1, index: 1 });
    let (policy, gate) = (HookId::policy(), HookId::from("kit/0"));
    let before = format!("{:?}", scene.session);
    for hooks in [&[&policy][..], &[&policy, &gate]] {
        assert!(!scene.tell(Some(round), agreed(call, hooks)), "{hooks:?}");
        assert_eq!(format!("{:?}", scene.session), before);
    }
    assert!(scene.tell(Some(round), agreed(call, &[&gate])));
    assert!(!scene.kinds().contains(&"tool.dispatched"), "the policy has not spoken");
}

#[test]
fn the_clock_stands_still_while_anyone_is_asked() {
    let limits = Limits { time_budget: Millis(1_000), ..Limits::default() };
    let mut scene = Scene::started(limits);
    scene.policy = Decision::Ask { reason: "sure?".into() };
    scene.tell(None, says(registry("1", &[])));
    scene.answer(0);
    // The first person is asked at 0 and the second at 5,000; they answer at 6,000 and 9,000. The process is down in between.
    scene.answer_all(|act| matches!(act, Act::CheckArguments(_)));
    scene.answer(0);
    scene.at = Millis(5_000);
    scene.answer(0);
    scene.at = Millis(6_000);
    let place = scene.open.iter().position(|(_, act)| matches!(act, Act::AskApproval(_))).unwrap();
    scene.answer(place);
    scene.at = Millis(8_000);
    scene.open.clear();
    scene.tell(None, SessionResumed { reason: "crash".into() });
    scene.at = Millis(9_000);
    scene.play();
    assert_eq!(scene.ended, Some(TurnOutcome::Answered), "{:?}", scene.kinds());
    assert_eq!(scene.at, Millis(9_000));
}

#[test]
fn time_counts_again_when_the_last_person_has_answered() {
    let mut scene = Scene::started(Limits { time_budget: Millis(1_000), ..Limits::default() });
    scene.policy = Decision::Ask { reason: "sure?".into() };
    scene.tell(None, says(registry("1", &[])));
    scene.answer(0);
    scene.answer_all(|act| matches!(act, Act::CheckArguments(_) | Act::EvaluatePolicy(_)));
    scene.at = Millis(50_000);
    scene.answer_all(|act| matches!(act, Act::AskApproval(_)));
    scene.at = Millis(51_001);
    scene.play();
    assert_eq!(scene.ended, Some(TurnOutcome::Limited(LimitKind::Time)));
}

#[test]
fn an_approval_for_the_session_is_for_the_content_that_was_approved() {
    let mut scene = Scene::started(Limits::default());
    scene.policy = Decision::Ask { reason: "sure?".into() };
    let mut asked = |content: &str| {
        scene.tell(None, says(registry(content, &[])));
        let mut asked = 0;
        while let Some((seq, act)) = scene.open.first().cloned() {
            match act {
                Act::AskApproval(_) => {
                    asked += 1;
                    scene.open.remove(0);
                    let answer = Answer::Approve { scope: ApprovalScope::Session };
                    scene.tell(Some(seq), ApprovalAnswered { approval: seq, answer });
                }
                _ => drop(scene.answer(0)),
            }
        }
        asked
    };
    assert_eq!(asked("1"), 3);
    assert_eq!(asked("1"), 0, "remembered");
    assert_eq!(asked("2"), 3, "the tools are no longer what they were");
}

#[test]
fn a_short_conversation_is_not_compacted() {
    let mut scene = Scene::started(Limits::default());
    scene.tell(None, says(registry("1", &[])));
    scene.play();
    let before = scene.session.transcript().len();
    let requested = |registry| CompactionRequested { reason: "test".into(), registry };
    scene.tell(None, requested(registry("1", &[])));
    assert_eq!(scene.session.transcript().len(), before);
    assert_eq!(scene.kinds().last(), Some(&"compaction.applied"));
    for _ in 0..3 {
        scene.tell(None, says(registry("1", &[])));
        scene.play();
    }
    scene.tell(None, requested(registry("1", &[HookPoint::CompactionBefore, HookPoint::CompactionProvide])));
    scene.play();
    let Some(Body::CompactionApplied(applied)) = scene.frames.last() else { panic!("{:?}", scene.kinds()) };
    assert_eq!(scene.session.transcript().len() as u32, applied.kept + 1);
}

#[test]
fn a_session_ends_once_and_only_between_turns() {
    let mut scene = Scene::started(Limits::default());
    let ended = || SessionEnded { reason: "test".into() };
    assert!(!scene.tell(None, says(RegistryPin::default())), "a turn needs a registry");
    let mut fresh = scene.clone();
    assert!(fresh.tell(None, ended()), "a session that never had a turn needs none to end");
    assert!(!fresh.session.is_busy());
    scene.tell(None, says(registry("1", &[HookPoint::SessionEnd])));
    assert!(!scene.tell(None, ended()));
    scene.play();
    assert!(scene.tell(None, ended()));
    assert!(!scene.tell(None, SessionCancelled { reason: "no".into() }), "the end is not cancelled");
    scene.open.clear();
    scene.tell(None, SessionResumed { reason: "crash".into() });
    scene.play();
    assert!(!scene.session.is_busy() && !scene.tell(None, ended()));
}

#[test]
fn nothing_that_it_is_told_makes_it_panic() {
    let stages = every_stage();
    let bodies: Vec<(Option<Seq>, Body)> = stages
        .iter()
        .flat_map(|scene| scene.open.iter().map(|(seq, act)| (Some(*seq), scene.answer_to(act.clone()))))
        .collect();
    let mut dice = 7u64;
    let mut roll = |sides: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) as usize % sides
    };
    for _ in 0..60 {
        let mut scene = Scene::started(Limits { max_turns: 3, max_tool_calls: Some(6), ..Limits::default() });
        for _ in 0..120 {
            scene.at = Millis(scene.at.0 + roll(2_000) as u64);
            match roll(8) {
                0 => drop(scene.tell(None, says(registry("1", HookPoint::ALL)))),
                1 if roll(4) == 0 => drop(scene.tell(None, SessionResumed { reason: "crash".into() })),
                2 if roll(4) == 0 => drop(scene.tell(None, SessionCancelled { reason: "no".into() })),
                3 => {
                    let (cause, body) = bodies[roll(bodies.len())].clone();
                    scene.tell(cause, body);
                }
                _ if !scene.open.is_empty() => {
                    let place = roll(scene.open.len());
                    scene.answer(place);
                }
                _ => {}
            }
        }
        scene.tell(None, SessionCancelled { reason: "the end".into() });
        while !scene.open.is_empty() {
            scene.answer(0);
        }
        assert!(!scene.session.is_busy(), "{:?}", scene.session);
    }
}

#[test]
fn a_provider_is_waited_for_as_long_as_it_asks() {
    for (asked, waited) in [(None, 500), (Some(7_000), 7_000), (Some(3), 500)] {
        let mut scene = Scene::started(Limits::default());
        scene.tell(None, says(registry("1", &[])));
        let (seq, _) = scene.open.remove(0);
        let (fault, retry_after) = (Fault::new(Code::ModelRateLimit, "slow down"), asked.map(Millis));
        scene.tell(Some(seq), ModelFailed { retry_after, ..ModelFailed::new(fault, true) });
        let Some(Body::ModelRequested(again)) = scene.frames.last() else { panic!("{:?}", scene.kinds()) };
        assert_eq!((again.attempt, again.delay), (2, Millis(waited)), "{asked:?}");
    }
}

/// A turn whose model has asked for these tools, up to where each call runs.
fn calling(limits: Limits, tools: &[&str]) -> Scene {
    let mut scene = Scene::started(limits);
    scene.tell(None, says(registry("1", &[])));
    let (asked, _) = scene.open.remove(0);
    scene.tell(Some(asked), gives(tools));
    scene.answer_all(|act| matches!(act, Act::CheckArguments(_) | Act::EvaluatePolicy(_)));
    scene
}

/// What the children so far were granted, in tokens and tool calls.
fn granted(scene: &Scene) -> Vec<(u64, Option<u32>)> {
    let opened = scene.frames.iter().filter_map(|body| match body {
        Body::ChildOpened(opened) => Some((opened.limits.max_tokens, opened.limits.max_tool_calls)),
        _ => None,
    });
    opened.collect()
}

/// Ends the first child that runs, which has used this much.
fn end_child(scene: &mut Scene, spent: Spent) {
    let place = scene.open.iter().position(|(_, act)| matches!(act, Act::OpenChild(_))).unwrap();
    let (seq, act) = scene.open.remove(place);
    let Act::OpenChild(act) = act else { return };
    let outcome = ToolOutcome::Result("done".into());
    assert!(scene.tell(Some(seq), ChildEnded { call: act.call, child: act.child, outcome, spent }));
}

#[test]
fn parallel_children_share_the_remaining_limits() {
    let limits = Limits { max_tokens: 90, max_tool_calls: Some(9), ..Limits::default() };
    let scene = calling(limits, &["helper", "pure", "helper", "helper"]);
    assert_eq!(granted(&scene), [(30, Some(1)), (30, Some(2)), (30, Some(2))], "4 of 9 calls are made");
}

#[test]
fn a_call_that_does_not_open_its_child_leaves_its_share_to_the_others() {
    let limits = Limits { max_tokens: 90, ..Limits::default() };
    let mut scene = Scene::started(limits);
    scene.tell(None, says(registry("1", &[])));
    let (asked, _) = scene.open.remove(0);
    scene.tell(Some(asked), gives(&["helper", "helper"]));
    scene.answer_all(|act| matches!(act, Act::CheckArguments(_)));
    scene.policy = Decision::Deny { reason: "no".into() };
    scene.answer(0);
    scene.policy = Decision::Allow;
    scene.answer(0);
    assert_eq!(granted(&scene), [(90, None)]);
}

#[test]
fn a_child_is_charged_and_its_reservation_released() {
    let limits = Limits { max_tokens: 100, max_tool_calls: Some(10), ..Limits::default() };
    let mut scene = calling(limits, &["helper", "helper"]);
    assert_eq!(granted(&scene), [(50, Some(4)), (50, Some(4))]);
    end_child(&mut scene, Spent { tokens: 10, tool_calls: 2, turns: 3, ..Spent::default() });
    assert_eq!(scene.session.left().max_tokens, 40, "10 are used and 50 reserved");
    end_child(&mut scene, Spent { tokens: 20, ..Spent::default() });
    let spent = scene.session.spent();
    assert_eq!((spent.tokens, spent.tool_calls, spent.turns), (30, 4, 2), "model calls are the turn's own");
    let (asked, _) = scene.open.remove(0);
    scene.tell(Some(asked), gives(&["helper"]));
    scene.answer_all(|act| matches!(act, Act::CheckArguments(_) | Act::EvaluatePolicy(_)));
    assert_eq!(granted(&scene)[2], (70, Some(5)), "nothing is reserved any more");
    let named = scene.frames.iter().any(|body| body.call() == Some(CallId { turn: 1, index: 3 }));
    assert!(named, "a child's calls do not number its parent's");
}

#[test]
fn an_invoked_agent_is_charged_to_the_turn_and_can_end_it() {
    let limits = Limits { max_tokens: 100, ..Limits::default() };
    let mut scene = calling(limits, &["pure"]);
    let used = |tokens| HostCalled {
        extension: "kit".into(),
        hook: None,
        ask: "agent.invoke".into(),
        arguments: "x".into(),
        outcome: ToolOutcome::Result("done".into()),
        spent: Some(Spent { tokens, ..Spent::default() }),
        streamed: None,
    };
    assert!(scene.tell(None, used(60)));
    assert_eq!(scene.session.left().max_tokens, 40);
    assert!(scene.tell(None, used(40)));
    scene.play();
    assert_eq!(scene.ended, Some(TurnOutcome::Limited(LimitKind::Tokens)));
}
