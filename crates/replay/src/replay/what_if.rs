//! A trial: another build of an extension, or another policy, on recorded sessions.
//!
//! Each recorded call is judged on its own: after the first difference, history would have gone another way. What is asked is
//! what was asked then, and what the host answered then it answers now. A hook that was not there when the session was recorded is
//! asked wherever it would have been, and compared with no objection.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_contract::body::{Body, FrameOrigin};
use holdfast_contract::content::Content;
use holdfast_contract::effect::{Act, CallAct, Effects, HookAct, Input};
use holdfast_contract::frame::{Frame, FrameSource};
use holdfast_contract::hook::{HookInput, HookPoint, HookSpec};
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::{CallId, ExtensionId, HookId, Millis, Seq, StreamId};
use holdfast_contract::matcher::MatchedCall;
use holdfast_contract::message::{CallView, TurnView};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::Descriptor;
use holdfast_contract::session_frames::{ChunkSaid, StreamGuarded, UiQuestion};
use holdfast_contract::tool::ToolOutcome;
use holdfast_contract::wire::{Call, Host, Instance, Later, UpdateSink};
use holdfast_kernel::Session;
use holdfast_policy::{Policy, PolicyRequest};
use holdfast_runtime::calls::{
    chunk_input, decision_of, result_of, start_call, window_with_overlap, windows,
};
use holdfast_runtime::rebuild::input_of;
use holdfast_store::Store;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};

use super::answers::{RecordedAnswers, told_again};
use super::check_kernel;
use super::reexecute::{RecordedCaller, noted};

/// What is tried.
pub enum WhatIfCandidate {
    /// Another build of an extension.
    Extension {
        /// The extension.
        id: ExtensionId,
        /// The build.
        instance: Arc<dyn Instance>,
        /// What it registers.
        descriptors: Vec<Descriptor>,
    },
    /// Another policy.
    Policy(Box<Policy>),
}

/// What became of the calls of one session.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIfReport {
    /// The session.
    pub session: StreamId,
    /// How many answers were the same.
    pub same: u64,
    /// Those that were not.
    pub different: Vec<JudgedCall>,
    /// Those about which nothing can be said.
    pub unknown: Vec<JudgedCall>,
}

/// One call, with both answers.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedCall {
    /// The frame that has the recorded answer, or what was judged.
    pub seq: Seq,
    /// What was called: a hook point, a tool, the policy.
    pub what: String,
    /// What was recorded.
    pub recorded: Value,
    /// What it says now; or why nothing can be said.
    pub now: Value,
}

/// Tries it on a session.
pub fn trial(store: &Store, session: &StreamId, tried: &WhatIfCandidate) -> Result<WhatIfReport, Problem> {
    if store.head(session)?.is_none() {
        return Err(Problem::new(Code::StoreMissing, format!("there is no session `{session}`")));
    }
    let mut run = Run {
        store,
        tried,
        machine: Session::new(session.clone()),
        hooks: HashMap::new(),
        calls: HashMap::new(),
        answers: BTreeMap::new(),
        questions: HashMap::new(),
        turn: None,
        trial: WhatIfReport { session: session.clone(), same: 0, different: Vec::new(), unknown: Vec::new() },
    };
    store.for_each_frame(session, Seq(0), |frame| {
        if frame.envelope.kind.origin() == FrameOrigin::Fact {
            run.take(&frame)?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(run.trial)
}

struct Run<'a> {
    store: &'a Store,
    tried: &'a WhatIfCandidate,
    machine: Session,
    hooks: HashMap<(Seq, HookId), HookAct>,
    calls: HashMap<(Seq, CallId), CallAct>,
    answers: BTreeMap<RecordedCaller, RecordedAnswers>,
    questions: HashMap<Seq, (RecordedCaller, UiQuestion)>,
    turn: Option<TurnView>,
    trial: WhatIfReport,
}

impl WhatIfCandidate {
    /// The hooks of a point.
    fn hooks_at(&self, point: HookPoint) -> impl Iterator<Item = (HookId, &HookSpec)> {
        let extension = match self {
            WhatIfCandidate::Extension { id, descriptors, .. } => Some((id, descriptors.as_slice())),
            WhatIfCandidate::Policy(_) => None,
        };
        let each = extension.into_iter().flat_map(|(id, all)| all.iter().map(move |one| (id, one)));
        let hooks = each.flat_map(|(id, descriptor)| {
            let specs = descriptor.hooks().iter().enumerate();
            specs.map(move |(index, spec)| (descriptor.hook_id(id, index), spec))
        });
        hooks.filter(move |(_, spec)| spec.point == point)
    }
}

impl Run<'_> {
    fn take(&mut self, frame: &Frame) -> Result<(), Problem> {
        let input = input_of(self.store, frame)?;
        check_kernel(&input.body)?;
        self.judge(frame.envelope.seq, &input);
        let refused = |fault: Fault| Problem::new(Code::ReplayDiverged, fault.to_string());
        let Effects { acts, .. } = self.machine.step(input).map_err(refused)?;
        for act in acts {
            match act {
                Act::CallHooks(round) => {
                    self.turn = Some(round.input.turn.clone());
                    for act in round.each() {
                        self.hooks.insert((act.decided_by, act.input.hook.clone()), act);
                    }
                }
                Act::EvaluatePolicy(act) => {
                    self.turn = Some(act.turn.clone());
                    let view = CallView {
                        id: act.call,
                        tool: act.spec.name.clone(),
                        arguments: act.arguments.clone(),
                    };
                    let subject = Some(act.arguments.clone());
                    self.ask_hooks(
                        HookPoint::ToolGate,
                        act.decided_by,
                        Some(view),
                        subject,
                        act.turn.clone(),
                    );
                    self.calls.insert((act.decided_by, act.call), *act);
                }
                Act::Dispatch(act) => drop(self.calls.insert((act.decided_by, act.call), *act)),
                Act::CallModel(act) => self.turn = Some(act.turn),
                _ => {}
            }
        }
        Ok(())
    }

    fn judge(&mut self, seq: Seq, input: &Input) {
        let cause = input.cause.unwrap_or_default();
        match (&input.body, self.tried) {
            (Body::HookDecided(fact), WhatIfCandidate::Policy(policy)) if fact.hook.is_policy() => {
                let Some(act) = fact.call.and_then(|call| self.calls.get(&(cause, call))) else { return };
                let (tool, extension) = (&*act.spec, &*act.extension);
                let request = PolicyRequest { tool, extension, arguments: &act.arguments, turn: &act.turn };
                let verdict = policy.evaluate(&request);
                let what = format!("policy on {}", act.spec.name);
                let same = verdict.decision == fact.decision;
                let recorded = json!({ "decision": fact.decision, "rule": fact.rule });
                self.note(
                    same,
                    seq,
                    what,
                    recorded,
                    json!({ "decision": verdict.decision, "rule": verdict.rule }),
                );
            }
            (Body::HookAgreed(fact), WhatIfCandidate::Extension { id, .. }) => {
                for hook in fact.hooks.iter() {
                    let asked = self.hooks.get(&(cause, hook.clone()));
                    if asked.is_some_and(|act| act.extension.id == *id) {
                        self.hook_again(seq, cause, hook, json!(fact.point.consent()));
                    }
                }
            }
            (Body::HookDecided(fact), WhatIfCandidate::Extension { .. }) if self.is_its(&input.source) => {
                let recorded = json!(fact.decision);
                self.hook_again(seq, cause, &fact.hook, recorded);
            }
            (Body::HookFaulted(fact), WhatIfCandidate::Extension { .. }) if self.is_its(&input.source) => {
                let recorded = json!({ "fault": fact.fault });
                self.hook_again(seq, cause, &fact.hook, recorded);
            }
            (Body::ToolReturned(fact), WhatIfCandidate::Extension { instance, .. }) => {
                let Some(act) = self.calls.remove(&(cause, fact.call)) else { return };
                if self.is_its(&input.source) {
                    let asker = (cause, act.extension.id.clone(), None);
                    let asked = Call::Tool {
                        call: act.call,
                        tool: act.spec.name.clone(),
                        arguments: act.arguments.clone(),
                        turn: act.turn.clone(),
                    };
                    let (answer, missed) = self.run(instance, asker, asked);
                    let now = match answer.map(|answer| answer.and_then(result_of)) {
                        Some(Ok(content)) => Some(json!({ "result": content })),
                        Some(Err(fault)) => Some(json!({ "failure": fault })),
                        None => None,
                    };
                    let recorded = json!(fact.outcome);
                    self.say(seq, format!("tool {}", act.spec.name), recorded, now, missed);
                }
                if let ToolOutcome::Result(result) = &fact.outcome {
                    let view =
                        CallView { id: act.call, tool: act.spec.name.clone(), arguments: act.arguments };
                    for point in [HookPoint::ToolAfter, HookPoint::SanitizeResult, HookPoint::GuardResult] {
                        self.ask_hooks(
                            point,
                            seq,
                            Some(view.clone()),
                            Some(result.clone()),
                            act.turn.clone(),
                        );
                    }
                }
            }
            (Body::InputReceived(fact), WhatIfCandidate::Extension { .. }) => {
                let turn = self.turn.clone().unwrap_or_default();
                for point in [HookPoint::InputNormalise, HookPoint::SanitizeInput, HookPoint::GuardInput] {
                    self.ask_hooks(point, seq, None, Some(fact.text.clone()), turn.clone());
                }
            }
            (Body::ModelReturned(fact), WhatIfCandidate::Extension { .. }) if fact.calls.is_empty() => {
                let turn = self.turn.clone().unwrap_or_default();
                for point in [HookPoint::SanitizeOutput, HookPoint::GuardOutput, HookPoint::ResponseProcess] {
                    self.ask_hooks(point, seq, None, Some(fact.text.clone()), turn.clone());
                }
                let text = fact.text.to_text();
                for window in windows(&text) {
                    let subject = Some(Content::text(window_with_overlap(&text, window)));
                    self.ask_hooks(HookPoint::GuardChunk, seq, None, subject, turn.clone());
                }
            }
            (Body::StreamGuarded(fact), WhatIfCandidate::Extension { .. }) => {
                self.chunks_again(seq, cause, fact)
            }
            (body, _) => {
                noted(&mut self.answers, &mut self.questions, seq, cause, &input.source, body);
            }
        }
    }

    fn is_its(&self, source: &FrameSource) -> bool {
        matches!((source, self.tried), (FrameSource::Extension(it), WhatIfCandidate::Extension { id, .. }) if it.id == *id)
    }

    /// A recorded call to a hook of the same extension.
    fn hook_again(&mut self, seq: Seq, cause: Seq, hook: &HookId, recorded: Value) {
        let WhatIfCandidate::Extension { instance, id, .. } = self.tried else { return };
        let Some(act) = self.hooks.remove(&(cause, hook.clone())) else { return };
        let point = act.input.point;
        let what = format!("{point:?}");
        let Some((hook, _)) = self.tried.hooks_at(point).next() else {
            let why = json!("the new build has no hook there");
            return self.trial.unknown.push(JudgedCall { seq, what, recorded, now: why });
        };
        let asker = (cause, id.clone(), Some(act.input.hook.clone()));
        let (answer, missed) = self.run(instance, asker, Call::Hook(HookInput { hook, ..act.input }));
        let now = answer.map(|answer| match answer.and_then(|reply| decision_of(reply, point)) {
            Ok(decision) => json!(decision),
            Err(fault) => json!({ "fault": fault }),
        });
        self.say(seq, what, recorded, now, missed);
    }

    /// A text that hooks of the same extension judged window by window.
    fn chunks_again(&mut self, seq: Seq, cause: Seq, fact: &StreamGuarded) {
        let WhatIfCandidate::Extension { instance, id, .. } = self.tried else { return };
        let (pinned, text) =
            (self.machine.pins().filter_map(|pin| pin.view.clone()).last(), fact.text.to_text());
        let turn = self.turn.clone().unwrap_or_default();
        let its = |hook: &&HookId| {
            let entry = pinned.as_ref().and_then(|registry| registry.hook(hook));
            entry.is_some_and(|entry| entry.extension.id == *id)
        };
        for recorded in fact.hooks.iter().filter(its) {
            for (number, window) in (0..).zip(windows(&text)) {
                let what = format!("{:?} {number}", HookPoint::GuardChunk);
                let word = fact.words.iter().find(|it| it.window == number && it.hook == *recorded);
                let said = word.map_or_else(
                    || json!(HookPoint::GuardChunk.consent()),
                    |word| match &word.said {
                        ChunkSaid::Decided(decision) => json!(decision),
                        ChunkSaid::Faulted(fault) => json!({ "fault": fault }),
                    },
                );
                let Some((hook, _)) = self.tried.hooks_at(HookPoint::GuardChunk).next() else {
                    let now = json!("the new build has no hook there");
                    self.trial.unknown.push(JudgedCall { seq, what, recorded: said, now });
                    continue;
                };
                let asker = (cause, id.clone(), Some(recorded.clone()));
                let call = Call::Hook(chunk_input(&hook, &text, window, &turn));
                let (answer, missed) = self.run(instance, asker, call);
                let now =
                    answer.map(|it| match it.and_then(|reply| decision_of(reply, HookPoint::GuardChunk)) {
                        Ok(decision) => json!(decision),
                        Err(fault) => json!({ "fault": fault }),
                    });
                self.say(seq, what, said, now, missed);
            }
        }
    }

    /// Asks the hooks of a point that was passed when the extension was not there.
    fn ask_hooks(
        &mut self,
        point: HookPoint,
        seq: Seq,
        call: Option<CallView>,
        subject: Option<Content>,
        turn: TurnView,
    ) {
        let WhatIfCandidate::Extension { instance, id, .. } = self.tried else { return };
        let pinned = self.machine.pins().filter_map(|pin| pin.view.clone()).last();
        if pinned.is_some_and(|registry| registry.hooks_at(point).iter().any(|hook| hook.extension.id == *id))
        {
            return;
        }
        let matched = call
            .as_ref()
            .map(|call| MatchedCall { tool: call.tool.as_str(), arguments: Some(call.arguments.value()) });
        for (hook, spec) in self.tried.hooks_at(point) {
            if !spec.matcher.applies(matched, &turn.origin.channel) {
                continue;
            }
            let input =
                HookInput { hook, point, call: call.clone(), subject: subject.clone(), turn: turn.clone() };
            let (answer, missed) = self.run(instance, (seq, id.clone(), None), Call::Hook(input));
            let now = answer.map(|answer| match answer.and_then(|reply| decision_of(reply, point)) {
                Ok(decision) => json!(decision),
                Err(fault) => json!({ "fault": fault }),
            });
            self.say(seq, format!("{point:?}"), json!(point.consent()), now, missed);
        }
    }

    /// Runs a call on an instance of its own. Gives whether it asked the host for something that is not recorded.
    fn run(
        &mut self,
        instance: &Arc<dyn Instance>,
        asker: RecordedCaller,
        call: Call,
    ) -> (Option<Result<holdfast_contract::wire::Reply, Fault>>, bool) {
        let answers = self.answers.remove(&asker).unwrap_or_default();
        let host = Arc::new(Witness { answers: Mutex::new(answers), missed: AtomicBool::new(false) });
        let instance = instance.fresh().unwrap_or_else(|| instance.clone());
        let answer = start_call(&instance, call, host.clone()).run_through();
        (answer, host.missed.load(Ordering::SeqCst))
    }

    fn say(&mut self, seq: Seq, what: String, recorded: Value, now: Option<Value>, missed: bool) {
        match now {
            Some(_) if missed => {
                let now = json!("it asks the host for something that was not recorded");
                self.trial.unknown.push(JudgedCall { seq, what, recorded, now });
            }
            Some(now) => self.note(now == recorded, seq, what, recorded, now),
            None => {
                let now = json!("it waits for the outside");
                self.trial.unknown.push(JudgedCall { seq, what, recorded, now });
            }
        }
    }

    fn note(&mut self, same: bool, seq: Seq, what: String, recorded: Value, now: Value) {
        if same {
            self.trial.same += 1
        } else {
            self.trial.different.push(JudgedCall { seq, what, recorded, now })
        }
    }
}

/// A host that answers from the record, and remembers when it could not.
struct Witness {
    answers: Mutex<RecordedAnswers>,
    missed: AtomicBool,
}

impl Host for Witness {
    fn call_within(&self, call: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        let next = self.answers.lock().next(&call);
        let answer = match next {
            Some(recorded) if recorded.call == call => recorded.answer,
            _ => {
                self.missed.store(true, Ordering::SeqCst);
                Err(Fault::new(Code::ReplayDiverged, "this was not asked when the session was recorded"))
            }
        };
        Box::pin(std::future::ready(answer))
    }
    fn call_streamed(
        &self,
        call: HostCall,
        timeout: Option<Millis>,
        updates: Arc<dyn UpdateSink>,
    ) -> Later<Result<Content, Fault>> {
        let recorded = self.answers.lock().next_streamed(&call);
        match recorded {
            Some((streamed, recorded)) => told_again(streamed, recorded.answer, updates),
            None => self.call_within(call, timeout),
        }
    }
}
