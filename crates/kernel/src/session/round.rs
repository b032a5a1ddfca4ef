//! How hooks are asked: one round per point and subject, in sequence or together, each hook answering exactly once.

use super::*;

impl StepContext<'_> {
    /// Asks the hooks of a point whose matchers apply; false if there are none. A gate round always has the policy.
    pub fn ask(&mut self, mut call: Option<&mut Call>, point: HookPoint) -> bool {
        let Some(registry) = &self.base.registry.view else { return false };
        let about = call.as_deref().map(|call| MatchedCall {
            tool: call.view.tool.as_str(),
            arguments: call.view.arguments.value(),
        });
        let hooks = matching_hooks(registry, point, about, &self.turn.context.origin.channel);
        let Some(hooks) = hooks else { return false };
        let round = HookRound::new(point, self.subject(call.as_deref_mut(), point).cloned(), hooks);
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
        if round.open().next().is_some_and(|(_, hook)| hook.is_policy()) {
            self.desk.act(call.and_then(|call| self.call_act(call)).map(Act::EvaluatePolicy));
        }
        let asked = open_hooks(registry, round);
        let Some(hook) = asked.ids.first().cloned() else { return };
        let input = HookInput {
            hook,
            point: round.point,
            call: view.cloned(),
            subject: subject.cloned(),
            turn: self.turn.context.clone(),
        };
        self.desk.act(Act::CallHooks(Box::new(RoundAct { decided_by: *begun, input, hooks: asked })));
    }

    /// Hooks have spoken; false if one of them is not being asked. The round goes on, or it is over and the others are told that
    /// they are no longer asked.
    pub fn heard(
        &mut self,
        mut call: Option<&mut Call>,
        mut round: HookRound,
        said: HookAnswers<'_>,
    ) -> bool {
        let taken = round.apply_answer(said);
        let (in_sequence, unheard) = (round.in_sequence(), round.is_open());
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
