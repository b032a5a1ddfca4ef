//! The way of a turn: input → normalise → guard → context → route → model → tools → … → guard → answer.
//!
//! A turn is a walk over hook points. Where a point has no hooks the walk goes straight on, so a turn without extensions takes
//! the same path at no cost. Compaction and the session's end are short walks of the same kind.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::effect::{Act, ModelAct, SummaryAct};
use holdfast_contract::hook::{Decision, HookPoint};
use holdfast_contract::ids::{CallId, HookId, Millis, ModelName, Seq};
use holdfast_contract::message::{Message, Spent, TurnContext, TurnView, Usage};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::RegistryPin;
use holdfast_contract::serde::{Deserialize, Serialize};
use holdfast_contract::session_frames::{
    CompactionApplied, CompactionProvided, CompactionStarted, ContextBlock, ContextInjected, GateReason,
    GuardVerdict, InputNormalised, ModelFailed, ModelRequested, ModelReturned, ModelRouted, TurnEnded,
    TurnOutcome, TurnStarted,
};
use holdfast_contract::tool::ToolOutcome;

use super::call::{Call, CallStage};
use super::round::Round;
use super::{Base, Status, Way};

/// What a model is asked again after, doubled each time.
const FIRST_DELAY: Millis = Millis(500);
/// How many messages compaction keeps whole if nobody says otherwise.
const DEFAULT_KEEP: u32 = 6;

/// A turn under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct Turn {
    pub purpose: Purpose,
    pub context: TurnView,
    pub registry: RegistryPin,
    pub stage: Stage,
    pub text: Content,
    pub blocks: Arc<Vec<Content>>,
    pub notes: Vec<Content>,
    pub calls: Vec<Call>,
    pub answer: Option<Content>,
    pub outcome: Option<TurnOutcome>,
    pub spent: Spent,
    /// The models to try, best first; the first is the one in use.
    pub models: Vec<ModelName>,
    pub routed_by: Option<HookId>,
    pub advice: Vec<ModelName>,
    pub attempt: u32,
    pub deadline: Millis,
    pub timer: Option<Seq>,
    pub compaction: Option<Seq>,
    pub keep: u32,
    pub instructions: Vec<String>,
    /// Set while the step that ends the turn runs.
    #[serde(skip)]
    pub over: bool,
}

/// What a walk is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) enum Purpose {
    Answer,
    Compact,
    End,
}

/// What a turn waits for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) enum Stage {
    Asking(Round),
    Model { requested: Seq },
    Tools,
    Summarising { started: Seq },
}

impl Turn {
    pub fn new(base: &mut Base, registry: RegistryPin, text: Content, purpose: Purpose) -> Self {
        if purpose == Purpose::Answer {
            base.turns += 1;
        }
        let context = TurnContext {
            session: base.id.clone(),
            turn: base.turns,
            agent: base.agent.clone(),
            origin: base.origin.clone(),
        };
        Self {
            purpose,
            context: Arc::new(context),
            registry,
            stage: Stage::Tools,
            text,
            blocks: Arc::default(),
            notes: Vec::new(),
            calls: Vec::new(),
            answer: None,
            outcome: None,
            spent: Spent::default(),
            models: base.settings.models.clone(),
            routed_by: None,
            advice: Vec::new(),
            attempt: 0,
            deadline: Millis::default(),
            timer: None,
            compaction: None,
            keep: DEFAULT_KEEP,
            instructions: Vec::new(),
            over: false,
        }
    }

    /// What hooks of a point are asked about.
    fn subject(&self, base: &Base, point: HookPoint) -> Option<Content> {
        match point {
            HookPoint::InputNormalise
            | HookPoint::SanitizeInput
            | HookPoint::GuardInput
            | HookPoint::Context
            | HookPoint::ModelRoute => Some(self.text.clone()),
            HookPoint::SanitizeOutput
            | HookPoint::GuardOutput
            | HookPoint::ResponseProcess
            | HookPoint::TurnEnd => self.answer.clone(),
            HookPoint::CompactionProvide => {
                let replaced = base.transcript.iter().take(cut(&base.transcript, self.keep));
                Some(Content::of(&replaced.collect::<Vec<_>>()))
            }
            _ => None,
        }
    }
}

impl Way<'_> {
    /// The first steps of a walk.
    pub(super) fn begin(&mut self, turn: &mut Turn) {
        match turn.purpose {
            Purpose::Answer => {
                let started = self
                    .desk
                    .record(TurnStarted { turn: turn.context.turn, registry: turn.registry.reference });
                turn.deadline = self.desk.now().plus(self.base.settings.limits.time_budget);
                turn.timer = Some(started);
                self.desk.act(Act::SetTimer { decided_by: started, at: turn.deadline });
                let first = turn.context.turn == 1;
                self.proceed(turn, if first { HookPoint::SessionStart } else { HookPoint::TurnStart });
            }
            Purpose::Compact => self.proceed(turn, HookPoint::CompactionBefore),
            Purpose::End => self.proceed(turn, HookPoint::SessionEnd),
        }
    }

    /// Walks from a point to the next thing that has to be waited for.
    pub(super) fn proceed(&mut self, turn: &mut Turn, from: HookPoint) {
        let mut point = Some(from);
        while let Some(here) = point {
            let subject = turn.subject(self.base, here);
            if let Some(round) = self.ask(turn, here, None, subject) {
                turn.stage = Stage::Asking(round);
                return;
            }
            point = self.leave(turn, here);
        }
    }

    /// What a finished round means for the turn.
    pub(super) fn turn_round_over(&mut self, turn: &mut Turn, mut round: Round) {
        let point = round.point;
        match point {
            HookPoint::InputNormalise | HookPoint::SanitizeInput => {
                let text = round.subject.take().unwrap_or_else(|| turn.text.clone());
                if text != turn.text {
                    turn.text = text.clone();
                    self.desk.record(InputNormalised { text });
                }
            }
            HookPoint::SanitizeOutput | HookPoint::ResponseProcess => turn.answer = round.subject.take(),
            HookPoint::Context => self.inject(turn, &round),
            HookPoint::ModelRoute => self.hear_routers(turn, &round),
            HookPoint::CompactionBefore => hear_compaction_hooks(turn, &round),
            HookPoint::CompactionProvide => {
                let replaced = round.answers().any(|(_, answer)| matches!(answer, Decision::Replace { .. }));
                turn.answer = round.subject.take().filter(|_| replaced);
            }
            _ => {}
        }
        if let Some(reason) = self.guard_verdict(&round, None) {
            return self.end_early(turn, TurnOutcome::Blocked { reason });
        }
        if let Some(next) = self.leave(turn, point) {
            self.proceed(turn, next);
        }
    }

    /// Records what guardrails said, and gives the reason if they blocked.
    pub(super) fn guard_verdict(&mut self, round: &Round, call: Option<CallId>) -> Option<String> {
        let guards =
            matches!(round.point, HookPoint::GuardInput | HookPoint::GuardOutput | HookPoint::GuardResult);
        let sanitizes = matches!(
            round.point,
            HookPoint::SanitizeInput | HookPoint::SanitizeOutput | HookPoint::SanitizeResult
        );
        if !guards && !(sanitizes && round.closed.is_some()) {
            return None;
        }
        let flags = round.answers().filter_map(|(hook, answer)| match answer {
            Decision::Flag { reason } => Some(GateReason { hook: hook.clone(), reason: reason.clone() }),
            _ => None,
        });
        let reasons = round.closed.iter().cloned().chain(flags).collect();
        self.desk.record(GuardVerdict { point: round.point, call, blocked: round.closed.is_some(), reasons });
        round.closed.as_ref().map(|closed| closed.reason.clone())
    }

    /// What follows a point whose hooks have all spoken: the next point, or nothing if something else has to be waited for.
    fn leave(&mut self, turn: &mut Turn, point: HookPoint) -> Option<HookPoint> {
        use HookPoint as P;
        Some(match point {
            P::SessionStart => P::TurnStart,
            P::TurnStart => P::InputNormalise,
            P::InputNormalise => P::SanitizeInput,
            P::SanitizeInput => P::GuardInput,
            P::GuardInput => {
                self.say(Message::User { text: turn.text.clone() });
                P::Context
            }
            P::Context => P::ModelRoute,
            P::ModelRoute => {
                self.route(turn);
                return None;
            }
            P::SanitizeOutput => P::GuardOutput,
            P::GuardOutput => P::ResponseProcess,
            P::ResponseProcess => {
                turn.outcome = Some(TurnOutcome::Answered);
                P::TurnEnd
            }
            P::SessionCancel => P::TurnEnd,
            P::CompactionBefore => {
                let started = CompactionStarted { keep: turn.keep, instructions: turn.instructions.clone() };
                turn.compaction = Some(self.desk.record(started));
                P::CompactionProvide
            }
            P::CompactionProvide => {
                self.summarise(turn);
                return None;
            }
            P::SessionEnd => {
                self.base.status = Status::Ended;
                turn.over = true;
                return None;
            }
            _ => {
                self.finish(turn);
                return None;
            }
        })
    }

    fn inject(&mut self, turn: &mut Turn, round: &Round) {
        let injected = round.answers().filter_map(|(hook, answer)| match answer {
            Decision::Inject { content } => Some((hook.clone(), content.clone())),
            _ => None,
        });
        let (blocks, texts): (Vec<_>, Vec<_>) = injected
            .map(|(hook, content)| (ContextBlock { hook, content: (&content).into() }, content))
            .unzip();
        if !blocks.is_empty() {
            self.desk.record(ContextInjected { blocks });
            turn.blocks = Arc::new(texts);
        }
    }

    /// An authoritative word counts where the profile enables it; advice is followed where it names one of the session's models.
    fn hear_routers(&mut self, turn: &mut Turn, round: &Round) {
        let settings = &self.base.settings;
        let mut chosen: Option<(bool, ModelName, HookId)> = None;
        for (hook, answer) in round.answers() {
            let Decision::Route { model, authoritative, .. } = answer else { continue };
            turn.advice.push(model.clone());
            let orders = *authoritative && settings.authoritative_routing;
            let counts = orders || settings.models.contains(model);
            let better = chosen.as_ref().is_none_or(|(had_order, _, _)| orders && !had_order);
            if counts && better {
                chosen = Some((orders, model.clone(), hook.clone()));
            }
        }
        if let Some((_, model, hook)) = chosen {
            turn.models.retain(|other| *other != model);
            turn.models.insert(0, model);
            turn.routed_by = Some(hook);
        }
    }

    fn route(&mut self, turn: &mut Turn) {
        let Some(model) = turn.models.first().cloned() else {
            let fault = Fault::new(Code::ModelUnknown, "no model is configured for this session");
            return self.end_early(turn, TurnOutcome::Failed(fault));
        };
        self.desk.record(ModelRouted { model, by: turn.routed_by.clone(), advice: turn.advice.clone() });
        self.request_model(turn);
    }

    /// Asks the model for the turn's next round, unless a limit stands in the way.
    pub(super) fn request_model(&mut self, turn: &mut Turn) {
        if let Some(reached) = self.limit_before_model(turn) {
            return self.end_by_limit(turn, reached);
        }
        for text in std::mem::take(&mut turn.notes) {
            self.say(Message::Note { text });
        }
        turn.spent.turns += 1;
        self.base.spent.turns += 1;
        turn.attempt = 1;
        self.attempt_model(turn, Millis(0));
    }

    pub(super) fn attempt_model(&mut self, turn: &mut Turn, delay: Millis) {
        let (Some(model), Some(registry)) = (turn.models.first().cloned(), turn.registry.view.clone()) else {
            return;
        };
        let requested = self.desk.record(ModelRequested {
            model: model.clone(),
            round: turn.spent.turns,
            attempt: turn.attempt,
            delay,
            messages: u32::try_from(self.base.transcript.len()).unwrap_or(u32::MAX),
        });
        turn.stage = Stage::Model { requested };
        self.desk.act(Act::CallModel(Box::new(ModelAct {
            decided_by: requested,
            model,
            delay,
            instructions: self.base.instructions.clone(),
            context: turn.blocks.clone(),
            messages: self.base.transcript.clone(),
            registry,
            turn: turn.context.clone(),
        })));
    }

    fn charge(&mut self, turn: &mut Turn, usage: Usage) {
        for spent in [&mut turn.spent, &mut self.base.spent] {
            spent.tokens =
                spent.tokens.saturating_add(usage.input_tokens).saturating_add(usage.output_tokens);
            spent.cost_micros = spent.cost_micros.saturating_add(usage.cost_micros);
        }
    }

    pub(super) fn model_returned(&mut self, turn: &mut Turn, fact: ModelReturned) {
        self.charge(turn, fact.usage);
        let ModelReturned { text, reasoning, calls, .. } = fact;
        if calls.is_empty() {
            turn.answer = Some(text);
            return self.proceed(turn, HookPoint::SanitizeOutput);
        }
        self.say(Message::Assistant { text, reasoning, calls: calls.clone() });
        let first = turn.spent.tool_calls;
        let number = turn.context.turn;
        turn.calls = calls
            .into_iter()
            .zip(first + 1..)
            .map(|(asked, index)| Call::new(CallId { turn: number, index }, asked))
            .collect();
        turn.stage = Stage::Tools;
        if let Some(reached) = self.limit_before_tools(turn) {
            return self.end_by_limit(turn, reached);
        }
        let count = u32::try_from(turn.calls.len()).unwrap_or(u32::MAX);
        turn.spent.tool_calls += count;
        self.base.spent.tool_calls += count;
        for index in 0..turn.calls.len() {
            self.take_up(turn, index);
        }
    }

    pub(super) fn model_failed(&mut self, turn: &mut Turn, fact: ModelFailed) {
        self.charge(turn, fact.usage);
        if fact.retryable && turn.attempt < self.base.settings.attempts {
            let delay = Millis(FIRST_DELAY.0 << (turn.attempt - 1).min(6));
            turn.attempt += 1;
            return self.attempt_model(turn, delay);
        }
        if turn.models.len() > 1 {
            turn.models.remove(0);
            turn.attempt = 1;
            let model = turn.models[0].clone();
            self.desk.record(ModelRouted { model, by: None, advice: Vec::new() });
            return self.attempt_model(turn, Millis(0));
        }
        self.end_early(turn, TurnOutcome::Failed(fact.fault));
    }

    fn summarise(&mut self, turn: &mut Turn) {
        let Some(started) = turn.compaction else { return };
        if let Some(summary) = turn.answer.take() {
            return self.apply_summary(turn, summary);
        }
        turn.stage = Stage::Summarising { started };
        self.desk.act(self.summary_act(turn, started));
    }

    pub(super) fn summary_act(&self, turn: &Turn, started: Seq) -> Act {
        Act::Summarise(Box::new(SummaryAct {
            decided_by: started,
            model: turn.models.first().cloned(),
            messages: self.base.transcript.clone(),
            keep: turn.keep,
            instructions: turn.instructions.clone(),
        }))
    }

    pub(super) fn summarised(&mut self, turn: &mut Turn, fact: CompactionProvided) {
        self.charge(turn, fact.usage);
        match fact.outcome {
            ToolOutcome::Result(summary) => self.apply_summary(turn, summary),
            ToolOutcome::Failure(_) => turn.over = true,
        }
    }

    fn apply_summary(&mut self, turn: &mut Turn, summary: Content) {
        let transcript = Arc::make_mut(&mut self.base.transcript);
        let cut = cut(transcript, turn.keep);
        transcript.splice(..cut, [Message::Note { text: summary }]);
        let kept = transcript.len() - 1;
        self.desk.record(CompactionApplied { replaced: cut as u32, kept: kept as u32 });
        turn.over = true;
    }

    /// Ends the turn before its time: whatever is under way is aborted, open calls are settled, and the last hooks are heard.
    pub(super) fn end_early(&mut self, turn: &mut Turn, outcome: TurnOutcome) {
        let closing = turn.outcome.is_some();
        match &turn.stage {
            Stage::Asking(round) => self.desk.act(Act::Abort { begun_by: round.asked }),
            Stage::Model { requested: begun_by } | Stage::Summarising { started: begun_by } => {
                self.desk.act(Act::Abort { begun_by: *begun_by });
            }
            Stage::Tools => self.cancel_calls(turn),
        }
        if turn.purpose != Purpose::Answer {
            turn.over = true;
            return;
        }
        if closing {
            return self.finish(turn);
        }
        let cancelled = matches!(outcome, TurnOutcome::Cancelled { .. });
        turn.answer = None;
        turn.outcome = Some(outcome);
        self.proceed(turn, if cancelled { HookPoint::SessionCancel } else { HookPoint::TurnEnd });
    }

    fn cancel_calls(&mut self, turn: &mut Turn) {
        for index in 0..turn.calls.len() {
            self.cancel_call(turn, index);
        }
        self.report_calls(turn);
    }

    fn finish(&mut self, turn: &mut Turn) {
        if let Some(timer) = turn.timer.take() {
            self.desk.act(Act::Abort { begun_by: timer });
        }
        for text in std::mem::take(&mut turn.notes) {
            self.say(Message::Note { text });
        }
        let outcome = turn.outcome.take().unwrap_or(TurnOutcome::Answered);
        let answer = turn.answer.take();
        if let Some(text) = answer.clone() {
            self.say(Message::Assistant { text, reasoning: None, calls: Vec::new() });
        }
        let ended = TurnEnded {
            turn: turn.context.turn,
            outcome: outcome.clone(),
            answer: answer.clone(),
            spent: turn.spent,
        };
        let decided_by = self.desk.record(ended);
        self.desk.act(Act::Deliver { decided_by, outcome, answer });
        turn.over = true;
    }

    /// Shows the model what the calls came to, in the order it asked.
    pub(super) fn report_calls(&mut self, turn: &mut Turn) {
        for call in std::mem::take(&mut turn.calls) {
            if let CallStage::Settled { content, failed } = call.stage {
                self.say(Message::Tool { call: call.id, model_id: call.model_id, content, failed });
            }
        }
    }
}

fn hear_compaction_hooks(turn: &mut Turn, round: &Round) {
    for (_, answer) in round.answers() {
        if let Decision::Compact { instructions, keep } = answer {
            turn.instructions.extend(instructions.clone());
            turn.keep = keep.unwrap_or(turn.keep);
        }
    }
}

/// Where the kept part begins: never between a call and its result.
fn cut(transcript: &[Message], keep: u32) -> usize {
    let mut cut = transcript.len().saturating_sub(keep as usize);
    while cut > 0 && matches!(transcript.get(cut), Some(Message::Tool { .. })) {
        cut -= 1;
    }
    cut
}
