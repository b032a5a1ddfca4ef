//! Models: which one a turn asks, when it is asked again, and what its answer leads to.

use holdfast_contract::effect::{Act, ModelAct};
use holdfast_contract::hook::{Decision, HookPoint};
use holdfast_contract::ids::{CallId, HookId, Millis, ModelName};
use holdfast_contract::message::{Message, Spent};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::session_frames::{
    GuardVerdict, ModelFailed, ModelRequested, ModelReturned, ModelRouted, StreamGuarded, TurnOutcome,
};

use super::call::Call;
use super::hooks::HookPipeline;
use super::turn::{TurnStage, TurnStep};
use crate::hook_round::HookRound;

/// The first delay before a model is asked again. It doubles with each attempt; a provider may ask for a longer one.
const FIRST_DELAY: Millis = Millis(500);

/// The longest delay that doubling leads to.
const MAX_DELAY: Millis = Millis(32_000);

/// A model that a router names.
struct Route<'a> {
    hook: &'a HookId,
    model: &'a ModelName,
    /// Whether it is an order, and the profile enables orders.
    authoritative: bool,
}

impl TurnStep<'_> {
    /// Chooses the turn's model. An authoritative route counts where the profile enables it; advice is followed where it names one of the
    /// session's models.
    pub fn route(&mut self, round: Option<&HookRound>) {
        let settings = &self.session.start.settings;
        let answers = round.into_iter().flat_map(HookRound::answers);
        let routes: Vec<Route<'_>> = answers
            .filter_map(|(hook, answer)| {
                let Decision::Route { model, authoritative, .. } = answer else { return None };
                let authoritative = *authoritative && settings.authoritative_routing;
                Some(Route { hook, model, authoritative })
            })
            .collect();
        let chosen = routes
            .iter()
            .filter(|route| route.authoritative || settings.models.contains(route.model))
            .min_by_key(|route| !route.authoritative);
        if let Some(Route { model, .. }) = chosen {
            self.turn.models.retain(|other| other != *model);
            self.turn.models.insert(0, (*model).clone());
        }
        let Some(model) = self.turn.models.first().cloned() else {
            let fault = Fault::new(Code::ModelUnknown, "no model is configured for this session");
            return self.end_early(TurnOutcome::Failed(fault));
        };
        self.recorder.record(ModelRouted {
            model,
            by: chosen.map(|route| route.hook.clone()),
            advice: routes.iter().map(|route| route.model.clone()).collect(),
        });
        self.request_model();
    }

    /// Makes the turn's next model call, unless a limit is reached.
    pub fn request_model(&mut self) {
        if let Some(reached) = self.limit_before_model(0) {
            return self.end_by_limit(reached);
        }
        self.append_notes();
        self.charge(Spent { turns: 1, ..Spent::default() });
        self.attempt_model(1, Millis(0));
    }

    pub fn attempt_model(&mut self, attempt: u32, delay: Millis) {
        let Some(model) = self.turn.models.first().cloned() else { return };
        let Some(registry) = self.session.registry.view.clone() else { return };
        let messages = self.session.transcript.clone();
        let decided_by = self.recorder.record(ModelRequested {
            model: model.clone(),
            round: self.turn.spent.turns,
            attempt,
            delay,
            messages: u32::try_from(messages.len()).unwrap_or(u32::MAX),
        });
        self.turn.wait(decided_by, TurnStage::WaitingForModel { attempt });
        self.recorder.act(Act::CallModel(Box::new(ModelAct {
            decided_by,
            model,
            delay,
            scope: self.session.scope(),
            instructions: self.session.instructions().clone(),
            context: self.turn.context_blocks.clone(),
            messages,
            registry,
            turn: self.turn.context.clone(),
        })));
    }

    /// The model has answered, or asks for tools.
    pub fn model_returned(&mut self, fact: &ModelReturned) {
        self.turn.stage = TurnStage::RunningCalls;
        self.charge(fact.usage.into());
        if fact.calls.is_empty() {
            self.turn.answer = Some(fact.text.clone());
            return self.proceed(HookPoint::SanitizeOutput);
        }
        self.session.append(Message::Assistant {
            text: fact.text.clone(),
            reasoning: fact.reasoning.clone(),
            calls: fact.calls.clone(),
        });
        let turn = self.turn.context.turn;
        let before = self.turn.calls_made;
        let numbered = (1..).map(|number| CallId { turn, index: before.saturating_add(number) });
        *self.calls = numbered.zip(&fact.calls).map(|(id, asked)| Call::new(id, asked)).collect();
        if let Some(reached) = self.limit_before_tools() {
            return self.end_by_limit(reached);
        }
        let tool_calls = u32::try_from(fact.calls.len()).unwrap_or(u32::MAX);
        self.turn.calls_made = before.saturating_add(tool_calls);
        self.charge(Spent { tool_calls, ..Spent::default() });
        self.expect_children();
        self.each_call(|call| call.start());
        self.review_calls(true);
    }

    /// Guardrails have judged what the model wrote so far. If they object, no more is read and the turn ends.
    pub fn stream_guarded(&mut self, fact: &StreamGuarded) {
        let objection = fact.objection();
        self.recorder.record(GuardVerdict {
            point: HookPoint::GuardChunk,
            call: None,
            blocked: objection.is_some(),
            reasons: fact.reasons(),
        });
        if let Some(reason) = objection {
            self.end_early(TurnOutcome::Blocked { reason });
        }
    }

    /// The model has failed: it is asked again after a delay, or the next model is asked, or the turn ends.
    pub fn model_failed(&mut self, attempt: u32, fact: &ModelFailed) {
        self.turn.stage = TurnStage::RunningCalls;
        self.charge(fact.usage.into());
        if let Some(reached) = fact.limit.clone() {
            return self.end_by_limit(reached);
        }
        if fact.retryable && attempt < self.session.start.settings.attempts {
            let backoff = FIRST_DELAY.backoff(attempt.saturating_sub(1), MAX_DELAY);
            let delay = fact.retry_after.map_or(backoff, |asked| asked.max(backoff));
            return self.retry_model(attempt.saturating_add(1), delay);
        }
        let Some(model) = self.turn.models.get(1).cloned() else {
            return self.end_early(TurnOutcome::Failed(fact.fault.clone()));
        };
        self.turn.models.remove(0);
        self.recorder.record(ModelRouted { model, by: None, advice: Vec::new() });
        self.retry_model(1, Millis(0));
    }

    /// Repeats a model call, unless what the failure cost has reached a limit.
    fn retry_model(&mut self, attempt: u32, delay: Millis) {
        match self.limit_before_model(1) {
            Some(reached) => self.end_by_limit(reached),
            None => self.attempt_model(attempt, delay),
        }
    }
}
