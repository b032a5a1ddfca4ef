//! How hooks are asked: one round per point and subject, in sequence or together, each hook answering exactly once.

use super::*;

/// Hooks of one point that were asked about one subject.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct Round {
    pub point: HookPoint,
    /// What is judged; in a sequence, as the hooks so far have left it.
    pub subject: Option<Content>,
    hooks: Arc<[HookId]>,
    answers: Vec<Option<Decision>>,
    /// How many from the front have answered.
    heard: usize,
    /// Who closed the gate.
    pub closed: Option<GateReason>,
}

impl Round {
    fn in_sequence(&self) -> bool {
        self.point.rules().order == Order::Sequence
    }

    /// The hooks that are being asked, with their places: all that have not answered, or the next one.
    fn open(&self) -> impl Iterator<Item = (usize, &HookId)> {
        let rest = self.hooks.iter().enumerate().skip(self.heard);
        let open = rest.filter(|(place, _)| matches!(self.answers.get(*place), Some(None)));
        open.take(if self.in_sequence() { 1 } else { usize::MAX })
    }

    /// The answers in hook order.
    pub fn answers(&self) -> impl Iterator<Item = (&HookId, &Decision)> {
        self.hooks.iter().zip(&self.answers).filter_map(|(hook, answer)| Some((hook, answer.as_ref()?)))
    }

    /// What gates ask for and guardrails remark, in hook order.
    pub fn remarks(&self) -> impl Iterator<Item = GateReason> {
        let remarks = self.answers().filter_map(|(hook, answer)| Some((hook, answer.remark()?)));
        remarks.map(|(hook, reason)| GateReason { hook: hook.clone(), reason: reason.to_owned() })
    }

    /// Whether these hooks are being asked, in this order.
    fn asks(&self, hooks: &[HookId]) -> bool {
        let mut open = self.open();
        !hooks.is_empty() && hooks.iter().all(|hook| open.any(|(_, asked)| asked == hook))
    }

    /// Takes a hook's word; false if it is not being asked.
    fn hear(&mut self, hook: &HookId, said: Result<&Decision, &Fault>) -> bool {
        let place = self.open().find(|(_, open)| *open == hook).map(|(place, _)| place);
        let said = match said {
            Ok(decision) if self.point.accepts(decision) => Ok(decision),
            Ok(_) => Err(Fault::new(Code::HookNonsense, "the answer does not fit the point").to_string()),
            Err(fault) => Err(fault.to_string()),
        };
        let closing = match &said {
            Ok(decision) => decision.objection(),
            Err(fault) => Some(fault.as_str()).filter(|_| self.point.rules().on_fault == OnFault::Close),
        };
        let Some(answer) = place.and_then(|place| self.answers.get_mut(place)) else { return false };
        self.closed = closing.map(|reason| GateReason { hook: hook.clone(), reason: reason.to_owned() });
        let decision = said.cloned().unwrap_or(Decision::Continue);
        self.subject = decision.replacement().cloned().or(self.subject.take());
        *answer = Some(decision);
        let next = self.open().next().map(|(place, _)| place);
        self.heard = next.unwrap_or(self.hooks.len());
        true
    }
}

impl Way<'_> {
    /// Asks the hooks of a point whose matchers apply; false if there are none. A gate round always has the policy.
    pub fn ask(&mut self, mut call: Option<&mut Call>, point: HookPoint) -> bool {
        let Some(registry) = &self.base.registry.view else { return false };
        let about = call.as_deref().map(|call| (call.view.tool.as_str(), call.view.arguments.value()));
        let hooks = registry.asked(point, about, &self.turn.context.origin.channel);
        if hooks.is_empty() {
            return false;
        }
        let answers = vec![None; hooks.len()];
        let subject = self.subject(call.as_deref_mut(), point).cloned();
        let round = Round { point, subject, hooks, answers, heard: 0, closed: None };
        let (hooks, subject) = (round.hooks.clone(), round.subject.as_ref().map(DigestOf::from));
        let call_id = call.as_deref().map(|call| call.view.id);
        let begun = self.desk.record(HookCalled { point, call: call_id, subject, hooks });
        *self.wait(call.as_deref_mut()) = Wait { begun, stage: Stage::Asking(round) };
        self.ask_open(call.as_deref());
        true
    }

    /// Asks the hooks of the round under way that have not answered: all of them, or the next one.
    pub fn ask_open(&mut self, call: Option<&Call>) {
        let Wait { begun, stage } = call.map_or(&self.turn.wait, |call| &call.wait);
        let (Stage::Asking(round), Some(registry)) = (stage, &self.base.registry.view) else { return };
        let (view, subject) = (call.map(|call| &call.view), round.subject.as_ref());
        let mut open = round.open().map(|(_, hook)| hook).peekable();
        if open.next_if(|hook| hook.is_policy()).is_some() {
            self.desk.act(call.and_then(|call| self.call_act(call)).map(Act::EvaluatePolicy));
        }
        let asked = registry.among(round.point, open);
        let act = RoundAct::new(*begun, round.point, asked, view, subject, &self.turn.context);
        self.desk.act(act.map(Act::CallHooks));
    }

    /// Hooks have spoken; false if one of them is not being asked. The round goes on, or it is over and the others are told that
    /// they are no longer asked.
    pub fn heard(&mut self, mut call: Option<&mut Call>, mut round: Round, said: HooksWord) -> bool {
        let (hooks, said) = said;
        let taken =
            (hooks.len() == 1 || round.asks(hooks)) && hooks.iter().all(|hook| round.hear(hook, said));
        let (in_sequence, unheard) = (round.in_sequence(), round.heard < round.hooks.len());
        let wait = self.wait(call.as_deref_mut());
        if unheard && round.closed.is_none() {
            wait.stage = Stage::Asking(round);
            if in_sequence && taken {
                self.ask_open(call.as_deref());
            }
            return taken;
        }
        let begun_by = wait.begun;
        self.desk.act((unheard && !in_sequence).then_some(Act::Abort { begun_by }));
        self.round_over(call, &round);
        true
    }
}
