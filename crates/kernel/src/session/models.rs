//! Models: which one a turn asks, when it is asked again, and what its answer leads to.

use super::*;

/// What a model is asked again after, doubled each time; longer if its provider asks for it.
const FIRST_DELAY: Millis = Millis(500);

impl StepContext<'_> {
    /// Chooses the turn's model. An authoritative word counts where the profile enables it; advice is followed where it names
    /// one of the session's models.
    pub fn route(&mut self, round: Option<&HookRound>) {
        let settings = &self.base.start.settings;
        let answers = round.into_iter().flat_map(HookRound::answers);
        let routes = answers.filter_map(|(hook, answer)| {
            let Decision::Route { model, authoritative, .. } = answer else { return None };
            Some((*authoritative && settings.authoritative_routing, model, hook))
        });
        let routes: Vec<_> = routes.collect();
        let counting = routes.iter().filter(|(order, model, _)| *order || settings.models.contains(model));
        let chosen = counting.min_by_key(|(order, ..)| !order);
        if let Some((_, model, _)) = chosen {
            self.turn.models.retain(|other| other != *model);
            self.turn.models.insert(0, (*model).clone());
        }
        let Some(model) = self.turn.models.first().cloned() else {
            let fault = Fault::new(Code::ModelUnknown, "no model is configured for this session");
            return self.end_early(TurnOutcome::Failed(fault));
        };
        let by = chosen.map(|(_, _, hook)| (*hook).clone());
        let advice = routes.iter().map(|(_, model, _)| (*model).clone()).collect();
        self.desk.record(ModelRouted { model, by, advice });
        self.request_model();
    }

    /// Asks the model for the turn's next round, unless a limit stands in the way.
    pub fn request_model(&mut self) {
        if let Some(reached) = self.limit_before_model(0) {
            return self.end_by_limit(reached);
        }
        self.say_notes();
        self.charge(Spent { turns: 1, ..Spent::default() });
        self.attempt_model(1, Millis(0));
    }

    pub fn attempt_model(&mut self, attempt: u32, delay: Millis) {
        let (model, registry) = (self.turn.models.first().cloned(), self.base.registry.view.clone());
        let (Some(model), Some(registry)) = (model, registry) else { return };
        let (context, turn) = (self.turn.blocks.clone(), self.turn.context.clone());
        let (scope, messages) = (self.base.scope(), self.base.transcript.clone());
        let own = self.base.agent().map(|agent| &agent.instructions);
        let instructions = own.unwrap_or(&self.base.start.instructions).clone();
        let (round, shown) = (self.turn.spent.turns, u32::try_from(messages.len()).unwrap_or(u32::MAX));
        let asked = ModelRequested { model: model.clone(), round, attempt, delay, messages: shown };
        let decided_by = self.desk.record(asked);
        self.turn.wait = Wait { begun: decided_by, stage: Stage::Model(attempt) };
        let act =
            ModelAct { decided_by, model, delay, scope, instructions, context, messages, registry, turn };
        self.desk.act(Act::CallModel(Box::new(act)));
    }

    pub fn model_returned(&mut self, fact: &ModelReturned) {
        self.charge(fact.usage.into());
        let ModelReturned { text, reasoning, calls, .. } = fact;
        if calls.is_empty() {
            self.turn.answer = Some(text.clone());
            return self.proceed(None, P::SanitizeOutput);
        }
        let (text, reasoning) = (text.clone(), reasoning.clone());
        self.base.say(Message::Assistant { text, reasoning, calls: calls.clone() });
        let (turn, before) = (self.turn.context.turn, self.turn.spent.tool_calls);
        let number = |place: u32| CallId { turn, index: before.saturating_add(place) };
        self.turn.calls = (1..).zip(calls).map(|(place, asked)| Call::new(number(place), asked)).collect();
        if let Some(reached) = self.limit_before_tools() {
            return self.end_by_limit(reached);
        }
        let tool_calls = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        self.charge(Spent { tool_calls, ..Spent::default() });
        self.each_call(Self::take_up);
        self.review_calls(true);
    }

    /// Guardrails have judged what the model wrote. Where they object, it is read no further and the turn ends.
    pub fn stream_guarded(&mut self, attempt: u32, fact: &StreamGuarded) {
        self.turn.wait.stage = Stage::Model(attempt);
        let (blocked, reasons) = (fact.objection(), fact.reasons());
        let (point, call) = (P::GuardChunk, None);
        self.desk.record(GuardVerdict { point, call, blocked: blocked.is_some(), reasons });
        if let Some(reason) = blocked {
            self.end_early(TurnOutcome::Blocked { reason });
        }
    }

    pub fn model_failed(&mut self, attempt: u32, fact: &ModelFailed) {
        self.charge(fact.usage.into());
        if let Some(reached) = fact.limit.clone() {
            return self.end_by_limit(reached);
        }
        if fact.retryable && attempt < self.base.start.settings.attempts {
            let delay = Millis(FIRST_DELAY.0 << attempt.saturating_sub(1).min(6));
            let delay = fact.retry_after.map_or(delay, |asked| asked.max(delay));
            return self.ask_again(attempt.saturating_add(1), delay);
        }
        let Some(model) = self.turn.models.get(1).cloned() else {
            return self.end_early(TurnOutcome::Failed(fact.fault.clone()));
        };
        self.turn.models.remove(0);
        self.desk.record(ModelRouted { model, by: None, advice: Vec::new() });
        self.ask_again(1, Millis(0));
    }

    /// Asks once more for the same round, unless what the failure cost has reached a limit.
    fn ask_again(&mut self, attempt: u32, delay: Millis) {
        match self.limit_before_model(1) {
            Some(reached) => self.end_by_limit(reached),
            None => self.attempt_model(attempt, delay),
        }
    }
}
