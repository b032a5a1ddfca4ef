//! A hook round: the hooks of one point that are asked about one subject, in sequence or together, each answering exactly once.

use std::slice::from_ref;
use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::hook::{Artifact, Decision, HookPoint, OnFault, Order};
use holdfast_contract::ids::{ExtensionId, HookId};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::serde::{Deserialize, Serialize};
use holdfast_contract::session_frames::{ContextBlock, GateReason};

/// Hooks that gave the same answer.
pub struct HookAnswers<'a> {
    /// The hooks, in the order in which they are asked.
    pub hooks: &'a [HookId],
    /// What each of them decided, or how it failed.
    pub answer: Result<&'a Decision, &'a Fault>,
}

impl<'a> HookAnswers<'a> {
    /// The hook answers that a fact carries, if it carries any. The policy never merely agrees: it names its rule, so a fact in which
    /// it agrees does not count as an answer.
    pub fn of(body: &'a Body) -> Option<Self> {
        match body {
            Body::HookAgreed(fact) if fact.hooks.iter().any(HookId::is_policy) => None,
            Body::HookAgreed(fact) => Some(Self { hooks: &fact.hooks, answer: Ok(fact.point.consent()) }),
            Body::HookDecided(fact) => Some(Self { hooks: from_ref(&fact.hook), answer: Ok(&fact.decision) }),
            Body::HookFaulted(fact) => Some(Self { hooks: from_ref(&fact.hook), answer: Err(&fact.fault) }),
            _ => None,
        }
    }
}

/// Hooks of one point that were asked about one subject.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(crate) struct HookRound {
    pub point: HookPoint,
    /// What is judged; in a sequence, as the hooks so far have left it.
    pub subject: Option<Content>,
    /// The hooks that are asked.
    pub hooks: Arc<[HookId]>,
    answers: Vec<Option<Decision>>,
    /// The number of hooks from the front that have answered.
    answered: usize,
    /// The hook that closed the gate, and why.
    pub closed: Option<GateReason>,
}

impl HookRound {
    /// A round in which no hook has answered.
    #[inline]
    pub fn new(point: HookPoint, subject: Option<Content>, hooks: Arc<[HookId]>) -> Self {
        let answers = vec![None; hooks.len()];
        Self { point, subject, hooks, answers, answered: 0, closed: None }
    }

    /// Whether each hook continues from what the one before it has left.
    #[inline]
    pub fn in_sequence(&self) -> bool {
        self.point.rules().order == Order::Sequence
    }

    /// Whether a hook has not answered.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.answered < self.hooks.len()
    }

    /// The hooks that are being asked, with their positions: all that have not answered, or the next one.
    #[inline]
    pub fn open(&self) -> impl Iterator<Item = (usize, &HookId)> + Clone {
        let rest = self.hooks.iter().enumerate().skip(self.answered);
        let open = rest.filter(|(position, _)| matches!(self.answers.get(*position), Some(None)));
        open.take(if self.in_sequence() { 1 } else { usize::MAX })
    }

    /// The answers in hook order.
    #[inline]
    pub fn answers(&self) -> impl Iterator<Item = (&HookId, &Decision)> {
        self.hooks.iter().zip(&self.answers).filter_map(|(hook, answer)| Some((hook, answer.as_ref()?)))
    }

    /// What gates ask for and guardrails flag, in hook order.
    #[inline]
    pub fn remarks(&self) -> impl Iterator<Item = GateReason> {
        let remarks = self.answers().filter_map(|(hook, answer)| Some((hook, answer.remark()?)));
        remarks.map(|(hook, reason)| GateReason { hook: hook.clone(), reason: reason.to_owned() })
    }

    /// Whether all of its hooks are being asked.
    #[inline]
    pub fn asks_everyone(&self) -> bool {
        self.answers.iter().all(Option::is_none) && (!self.in_sequence() || self.answers.len() == 1)
    }

    /// Whether these hooks are being asked, in this order.
    fn asks(&self, hooks: &[HookId]) -> bool {
        let mut open = self.open();
        hooks.iter().all(|hook| open.any(|(_, asked)| asked == hook))
    }

    /// Applies the answer that these hooks gave; false if they are not being asked, in this order.
    #[inline]
    pub fn apply_answer(&mut self, HookAnswers { hooks, answer }: HookAnswers<'_>) -> bool {
        let Some(last) = hooks.last().filter(|_| self.asks(hooks)) else { return false };
        let answer = match answer {
            Ok(decision) if self.point.accepts(decision) => Ok(decision),
            Ok(_) => Err(Fault::new(Code::HookNonsense, "the answer does not fit the point").to_string()),
            Err(fault) => Err(fault.to_string()),
        };
        let objection = match &answer {
            Ok(decision) => decision.objection(),
            Err(fault) => Some(fault.as_str()).filter(|_| self.point.rules().on_fault == OnFault::Close),
        };
        self.closed = objection.map(|reason| GateReason { hook: last.clone(), reason: reason.to_owned() });
        let decision = answer.unwrap_or(&Decision::Continue);
        if let Some(replacement) = decision.replacement() {
            self.subject = Some(replacement.clone());
        }
        let mut hooks = hooks.iter().peekable();
        let open = self.hooks.iter().zip(&mut self.answers).skip(self.answered);
        for (hook, answer) in open.filter(|(_, answer)| answer.is_none()) {
            if hooks.next_if_eq(&hook).is_some() {
                *answer = Some(decision.clone());
            }
        }
        let next = self.open().next().map(|(position, _)| position);
        self.answered = next.unwrap_or(self.hooks.len());
        true
    }

    /// What context providers inject: as it is recorded, and as the model gets it.
    pub fn injected(&self) -> (Vec<ContextBlock>, Vec<Content>) {
        let injected = self.answers().filter_map(|(hook, answer)| {
            let Decision::Inject { content } = answer else { return None };
            Some((ContextBlock { hook: hook.clone(), content: content.into() }, content.clone()))
        });
        injected.unzip()
    }

    /// The implementation of a tool that was chosen: the last one named.
    pub fn implementation(&self) -> Option<&ExtensionId> {
        let chosen = self.answers().filter_map(|(_, answer)| match answer {
            Decision::Modify { implementation, .. } => implementation.as_ref(),
            _ => None,
        });
        chosen.last()
    }

    /// What is attached to a result, and how it is rendered.
    pub fn enrichment(&self) -> (Vec<Artifact>, Option<Content>) {
        let (mut attached, mut rendered) = (Vec::new(), None);
        for (_, answer) in self.answers() {
            if let Decision::Enrich { artifacts, render, .. } = answer {
                attached.extend(artifacts.iter().cloned());
                rendered = render.clone().or(rendered);
            }
        }
        (attached, rendered)
    }

    /// The instructions for a compaction, and how many messages it keeps if a hook names a number.
    pub fn compaction(&self) -> (Vec<String>, Option<u32>) {
        let (mut all, mut kept) = (Vec::new(), None);
        for (_, answer) in self.answers() {
            if let Decision::Compact { instructions, keep } = answer {
                all.extend(instructions.clone());
                kept = keep.or(kept);
            }
        }
        (all, kept)
    }
}
