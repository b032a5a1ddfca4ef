//! Gate coverage: every dispatched call was preceded by exactly one decision of every gate that applied, on the arguments it ran
//! with, and by a person's word where one was asked for. A decision is keyed on the call and the digest of its arguments. What a model
//! said was judged by every guardrail on streamed text that applied, in all its parts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::{Envelope, Frame};
use holdfast_contract::hook::{Decision, HookPoint};
use holdfast_contract::ids::{CallId, HookId, Seq, StreamId, ToolName};
use holdfast_contract::matcher::MatchedCall;
use holdfast_contract::registry::{Registry, RegistryPin};
use holdfast_contract::session_frames::{Answer, ApprovalScope, StreamGuarded};
use holdfast_runtime::calls::windows;

use super::VerificationFinding;
use super::registries::Registries;

/// What a session's frames have shown so far.
pub(super) struct Coverage<'a> {
    stream: StreamId,
    registries: &'a Registries,
    registry: Option<Arc<Registry>>,
    origin: String,
    tools: BTreeMap<CallId, ToolName>,
    /// Every value that was ever a call's arguments, by digest.
    arguments: BTreeMap<Digest, Content>,
    /// The last digest that each call was accepted with, changed or edited to.
    rounds: BTreeMap<(CallId, Digest), GateRound>,
    /// Who has been answered by a person, for each call.
    answered: BTreeMap<CallId, BTreeSet<HookId>>,
    approvals: BTreeMap<Seq, (CallId, Vec<HookId>)>,
    remembered: BTreeSet<ToolName>,
    /// The texts that guardrails judged while they were streamed, by the model request that caused them; none for one that they stopped.
    guarded: BTreeMap<Seq, Vec<Option<Digest>>>,
    pub findings: Vec<VerificationFinding>,
}

/// The last round of gates on one call and one set of arguments.
struct GateRound {
    asked: Seq,
    decisions: BTreeMap<HookId, Vec<Verdict>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Allow,
    Ask,
    Deny,
}

impl<'a> Coverage<'a> {
    pub(super) fn new(stream: StreamId, registries: &'a Registries) -> Self {
        Self {
            stream,
            registries,
            registry: None,
            origin: String::new(),
            tools: BTreeMap::new(),
            arguments: BTreeMap::new(),
            rounds: BTreeMap::new(),
            answered: BTreeMap::new(),
            approvals: BTreeMap::new(),
            remembered: BTreeSet::new(),
            guarded: BTreeMap::new(),
            findings: Vec::new(),
        }
    }

    /// The registry that the coming turn runs on. It has to be one that the system made, with everyone in it who had to judge.
    pub(super) fn pin(&mut self, envelope: &Envelope, registry: &RegistryPin) {
        self.registry = registry.view.clone();
        if let Some((kind, detail)) = self.registries.problem(&registry.reference, envelope.at) {
            self.report(envelope.seq, kind, detail);
        }
    }

    pub(super) fn see(&mut self, frame: &Frame, body: &Body) {
        let seq = frame.envelope.seq;
        match body {
            Body::SessionStarted(fact) => self.origin = fact.origin.channel.clone(),
            Body::StreamGuarded(fact) => self.guarded(frame, fact),
            Body::ModelReturned(fact) => {
                self.returned(frame, &fact.text);
                fact.calls.iter().for_each(|call| self.value(&call.arguments));
            }
            Body::ToolChecked(fact) => {
                if let holdfast_contract::session_frames::CheckOutcome::Coerced { arguments } = &fact.outcome
                {
                    self.value(arguments);
                }
            }
            Body::ToolCalled(fact) => drop(self.tools.insert(fact.call, fact.tool.clone())),
            Body::HookCalled(fact) if fact.point == HookPoint::ToolGate => {
                if let (Some(call), Some(subject)) = (fact.call, &fact.subject) {
                    self.rounds
                        .insert((call, subject.get()), GateRound { asked: seq, decisions: BTreeMap::new() });
                }
            }
            Body::HookAgreed(fact) => {
                let subject = fact.subject.as_ref().map(|it| it.get());
                for hook in fact.hooks.iter() {
                    self.decided(frame, fact.call, subject, hook, Verdict::Allow);
                }
            }
            Body::HookDecided(fact) => {
                if let Decision::Modify { arguments: Some(arguments), .. } = &fact.decision {
                    self.value(arguments);
                }
                let verdict = match &fact.decision {
                    Decision::Allow => Verdict::Allow,
                    Decision::Ask { .. } => Verdict::Ask,
                    _ => Verdict::Deny,
                };
                self.decided(frame, fact.call, fact.subject.as_ref().map(|it| it.get()), &fact.hook, verdict);
            }
            Body::HookFaulted(fact) => {
                let subject = fact.subject.as_ref().map(|it| it.get());
                self.decided(frame, fact.call, subject, &fact.hook, Verdict::Deny);
            }
            Body::ApprovalRequested(fact) => {
                let hooks = fact.reasons.iter().map(|reason| reason.hook.clone()).collect();
                self.approvals.insert(seq, (fact.call, hooks));
            }
            Body::ApprovalAnswered(fact) => self.person(fact.approval, &fact.answer),
            Body::ToolDispatched(fact) => self.dispatched(seq, fact.call, fact.arguments.get()),
            Body::ChildOpened(fact) => {
                let last = self
                    .rounds
                    .iter()
                    .filter(|((call, _), _)| *call == fact.call)
                    .max_by_key(|(_, it)| it.asked);
                match last.map(|((_, digest), _)| *digest) {
                    Some(digest) => self.dispatched(seq, fact.call, digest),
                    None => self.report(seq, "no_gate", format!("call {} ran without any gate", fact.call)),
                }
            }
            _ => {}
        }
    }

    /// The guardrails that must have judged what was streamed.
    fn chunk_guards(&self) -> Vec<HookId> {
        let registered = self.registry.iter().flat_map(|registry| registry.hooks_at(HookPoint::GuardChunk));
        let applying = registered.filter(|hook| hook.spec.matcher.applies(None, &self.origin));
        applying.map(|hook| hook.id.clone()).collect()
    }

    fn guarded(&mut self, frame: &Frame, fact: &StreamGuarded) {
        let seq = frame.envelope.seq;
        if fact.hooks[..] != self.chunk_guards() {
            self.report(
                seq,
                "chunk_guard_missing",
                "not every guardrail judged what was streamed".to_owned(),
            );
        }
        if windows(&fact.text.to_text()).count() != fact.windows as usize {
            self.report(seq, "chunk_missing", "not every part of what was streamed was judged".to_owned());
        }
        let passed = fact.objection().is_none().then(|| fact.text.digest());
        self.guarded.entry(frame.envelope.cause.unwrap_or_default()).or_default().push(passed);
    }

    fn returned(&mut self, frame: &Frame, text: &Content) {
        let judged = self.guarded.remove(&frame.envelope.cause.unwrap_or_default()).unwrap_or_default();
        if text.to_text().is_empty() || self.chunk_guards().is_empty() {
            return;
        }
        let seq = frame.envelope.seq;
        if judged.contains(&None) {
            self.report(seq, "chunk_blocked", "a model was heard although a guardrail stopped it".to_owned());
        } else if !judged.contains(&Some(text.digest())) {
            self.report(
                seq,
                "chunk_guard_missing",
                "what a model said was judged by no guardrail".to_owned(),
            );
        }
    }

    fn value(&mut self, content: &Content) {
        self.arguments.insert(content.digest(), content.clone());
    }

    fn decided(
        &mut self,
        frame: &Frame,
        call: Option<CallId>,
        subject: Option<Digest>,
        hook: &HookId,
        verdict: Verdict,
    ) {
        let (Some(call), Some(subject)) = (call, subject) else { return };
        if let Some(round) = self.rounds.get_mut(&(call, subject))
            && frame.envelope.cause == Some(round.asked)
        {
            round.decisions.entry(hook.clone()).or_default().push(verdict);
        }
    }

    fn person(&mut self, approval: Seq, answer: &Answer) {
        let Some((call, hooks)) = self.approvals.get(&approval).cloned() else { return };
        match answer {
            Answer::Approve { scope } => {
                if *scope == ApprovalScope::Session {
                    self.remembered.extend(self.tools.get(&call).cloned());
                }
                self.answered.entry(call).or_default().extend(hooks);
            }
            Answer::Edit { arguments } => {
                self.value(arguments);
                self.answered.entry(call).or_default().extend(hooks);
            }
            Answer::Deny { .. } => {}
        }
    }

    fn dispatched(&mut self, seq: Seq, call: CallId, arguments: Digest) {
        let Some(tool) = self.tools.get(&call).cloned() else {
            return self.report(seq, "no_call", format!("call {call} ran and was never recorded as called"));
        };
        let Some(round) = self.rounds.get(&(call, arguments)) else {
            return self.report(
                seq,
                "no_gate",
                format!("call {call} ran with arguments that no gate judged"),
            );
        };
        let mut problems = Vec::new();
        for gate in self.gates(&tool, arguments) {
            match round.decisions.get(&gate).map(Vec::as_slice).unwrap_or_default() {
                [] => problems.push(("gate_missing", format!("gate {gate} did not decide on call {call}"))),
                [Verdict::Allow] => {}
                [Verdict::Deny] => {
                    problems.push(("gate_denied", format!("call {call} ran although {gate} denied it")))
                }
                [Verdict::Ask] => {
                    let person = self.answered.get(&call).is_some_and(|hooks| hooks.contains(&gate));
                    let remembered = gate.is_policy() && self.remembered.contains(&tool);
                    if !person && !remembered {
                        problems.push((
                            "not_approved",
                            format!("call {call} ran although {gate} asked and nobody approved"),
                        ));
                    }
                }
                _ => problems
                    .push(("gate_repeated", format!("gate {gate} decided more than once on call {call}"))),
            }
        }
        for (kind, detail) in problems {
            self.report(seq, kind, detail);
        }
    }

    /// Every gate that must have spoken on a call with these arguments: the policy, and those whose matcher applies.
    fn gates(&self, tool: &ToolName, arguments: Digest) -> Vec<HookId> {
        let value = self.arguments.get(&arguments).map(Content::value);
        let about = Some(MatchedCall { tool: tool.as_str(), arguments: value });
        let registered = self.registry.iter().flat_map(|registry| registry.hooks_at(HookPoint::ToolGate));
        let applying = registered.filter(|hook| hook.spec.matcher.applies(about, &self.origin));
        std::iter::once(HookId::from(HookId::POLICY)).chain(applying.map(|hook| hook.id.clone())).collect()
    }

    fn report(&mut self, seq: Seq, kind: &str, detail: String) {
        let finding = VerificationFinding {
            stream: self.stream.clone(),
            seq: Some(seq),
            kind: kind.to_owned(),
            detail,
        };
        self.findings.push(finding);
    }
}
