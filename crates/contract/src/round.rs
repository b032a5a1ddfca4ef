//! A round: the hooks of one point that are asked about one subject, in sequence or together, each answering exactly once. The kernel asks
//! and decides what follows; this is what it keeps meanwhile.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::hook::{Artifact, Decision, HookPoint, OnFault, Order};
use crate::ids::{ExtensionId, HookId};
use crate::problem::{Code, Fault};
use crate::session_frames::{ContextBlock, GateReason};

/// Hooks of one point that were asked about one subject.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Round {
    /// Where.
    pub point: HookPoint,
    /// What is judged; in a sequence, as the hooks so far have left it.
    pub subject: Option<Content>,
    /// Who is asked.
    pub hooks: Arc<[HookId]>,
    answers: Vec<Option<Decision>>,
    /// How many from the front have answered.
    pub heard: usize,
    /// Who closed the gate.
    pub closed: Option<GateReason>,
}

impl Round {
    /// A round that begins: everybody is asked, and nobody has answered.
    #[inline]
    pub fn new(point: HookPoint, subject: Option<Content>, hooks: Arc<[HookId]>) -> Self {
        let answers = vec![None; hooks.len()];
        Self { point, subject, hooks, answers, heard: 0, closed: None }
    }

    /// Whether each hook goes on from what the one before it has left.
    #[inline]
    pub fn in_sequence(&self) -> bool {
        self.point.rules().order == Order::Sequence
    }

    /// The hooks that are being asked, with their places: all that have not answered, or the next one.
    #[inline]
    pub fn open(&self) -> impl Iterator<Item = (usize, &HookId)> + Clone {
        let rest = self.hooks.iter().enumerate().skip(self.heard);
        let open = rest.filter(|(place, _)| matches!(self.answers.get(*place), Some(None)));
        open.take(if self.in_sequence() { 1 } else { usize::MAX })
    }

    /// The answers in hook order.
    #[inline]
    pub fn answers(&self) -> impl Iterator<Item = (&HookId, &Decision)> {
        self.hooks.iter().zip(&self.answers).filter_map(|(hook, answer)| Some((hook, answer.as_ref()?)))
    }

    /// What gates ask for and guardrails remark, in hook order.
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

    /// Takes a word that these hooks have said alike; false if they are not being asked, in this order.
    #[inline]
    pub fn apply_answer(&mut self, hooks: &[HookId], said: Result<&Decision, &Fault>) -> bool {
        let Some(last) = hooks.last().filter(|_| self.asks(hooks)) else { return false };
        let said = match said {
            Ok(decision) if self.point.accepts(decision) => Ok(decision),
            Ok(_) => Err(Fault::new(Code::HookNonsense, "the answer does not fit the point").to_string()),
            Err(fault) => Err(fault.to_string()),
        };
        let closing = match &said {
            Ok(decision) => decision.objection(),
            Err(fault) => Some(fault.as_str()).filter(|_| self.point.rules().on_fault == OnFault::Close),
        };
        self.closed = closing.map(|reason| GateReason { hook: last.clone(), reason: reason.to_owned() });
        let decision = said.unwrap_or(&Decision::Continue);
        if let Some(replacement) = decision.replacement() {
            self.subject = Some(replacement.clone());
        }
        let mut hooks = hooks.iter().peekable();
        let open = self.hooks.iter().zip(&mut self.answers).skip(self.heard);
        for (hook, answer) in open.filter(|(_, answer)| answer.is_none()) {
            if hooks.next_if_eq(&hook).is_some() {
                *answer = Some(decision.clone());
            }
        }
        let next = self.open().next().map(|(place, _)| place);
        self.heard = next.unwrap_or(self.hooks.len());
        true
    }

    /// What context providers have to say, and where it comes from.
    pub fn injected(&self) -> (Vec<ContextBlock>, Vec<Content>) {
        let injected = self.answers().filter_map(|(hook, answer)| {
            let Decision::Inject { content } = answer else { return None };
            Some((ContextBlock { hook: hook.clone(), content: content.into() }, content.clone()))
        });
        injected.unzip()
    }

    /// The implementation of a tool that the last of those who name one has chosen.
    pub fn implementation(&self) -> Option<&ExtensionId> {
        let chosen = self.answers().filter_map(|(_, answer)| match answer {
            Decision::Modify { implementation, .. } => implementation.as_ref(),
            _ => None,
        });
        chosen.last()
    }

    /// What is attached to a result, and how it is to be shown.
    pub fn enrichment(&self) -> (Vec<Artifact>, Option<Content>) {
        let (mut attached, mut shown) = (Vec::new(), None);
        for (_, answer) in self.answers() {
            if let Decision::Enrich { artifacts, render, .. } = answer {
                attached.extend(artifacts.iter().cloned());
                shown = render.clone().or(shown);
            }
        }
        (attached, shown)
    }

    /// What a compaction is to heed, and how many messages it is to keep if somebody says.
    pub fn compaction(&self) -> (Vec<String>, Option<u32>) {
        let (mut heeded, mut kept) = (Vec::new(), None);
        for (_, answer) in self.answers() {
            if let Decision::Compact { instructions, keep } = answer {
                heeded.extend(instructions.clone());
                kept = keep.or(kept);
            }
        }
        (heeded, kept)
    }
}
