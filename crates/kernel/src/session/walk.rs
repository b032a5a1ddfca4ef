//! The way of a turn: input → normalise → guard → context → route → model → tools → … → guard → answer.
//!
//! A turn is a walk over hook points, and so is each of its calls; [`HookPoint::rules`] says which point is next. Where a point
//! has no hooks the walk goes straight on, so a turn without extensions takes the same path at no cost. Compaction and the
//! session's end are short walks of the same kind.

use super::*;

impl StepContext<'_> {
    /// The first steps of a walk.
    pub fn begin(&mut self) {
        self.address(self.base.speaker.clone(), None);
        self.turn.time_limit = TimeLimit::of(&self.base.limits(), &self.base.spent);
        self.turn.deadline = self.desk.now().plus(self.turn.time_limit.budget);
        let first = match self.turn.purpose {
            Purpose::Answer => {
                let (turn, registry) = (self.turn.context.turn, self.base.registry.reference);
                let started = self.desk.record(TurnStarted { turn, registry });
                self.set_timer(started);
                if turn == 1 { P::SessionStart } else { P::TurnStart }
            }
            Purpose::Compact => {
                self.set_timer(self.desk.cause);
                P::CompactionBefore
            }
            Purpose::End => P::SessionEnd,
        };
        self.proceed(None, first);
    }

    /// Walks a turn or a call from a point to the next thing that has to be waited for.
    pub fn proceed(&mut self, mut call: Option<&mut Call>, from: P) {
        let mut next = Some(from);
        while let Some(point) = next {
            if self.ask(call.as_deref_mut(), point) {
                return;
            }
            next = self.leave(call.as_deref_mut(), point, None);
        }
    }

    /// A round is over: what was judged is now as the hooks have left it, and the walk goes on unless it was blocked.
    pub fn round_over(&mut self, mut call: Option<&mut Call>, round: &HookRound) {
        let judged = self.subject(call.as_deref_mut(), round.point).zip(round.subject.as_ref());
        if let Some((judged, subject)) = judged.filter(|(judged, subject)| *judged != *subject) {
            *judged = subject.clone();
            // Until there is an answer, what a turn's own hooks rewrite is its text.
            if call.is_none() && self.turn.purpose == Purpose::Answer && self.turn.answer.is_none() {
                self.desk.record(InputNormalised { text: subject.clone() });
            }
        }
        let blocked = self.guard_verdict(call.as_deref(), round);
        match (blocked, call) {
            (None, mut call) => {
                if let Some(next) = self.leave(call.as_deref_mut(), round.point, Some(round)) {
                    self.proceed(call, next);
                }
            }
            (Some(reason), Some(call)) => self.fail(call, Code::GuardBlocked, reason),
            (Some(reason), None) => self.end_early(TurnOutcome::Blocked { reason }),
        }
    }

    /// What hooks of a point are asked about.
    pub fn subject<'b>(&'b mut self, call: Option<&'b mut Call>, point: P) -> Option<&'b mut Content> {
        match point {
            P::SanitizeOutput | P::GuardOutput | P::ResponseProcess | P::TurnEnd => self.turn.answer.as_mut(),
            P::ToolModify | P::ToolGate => call.map(|call| &mut call.view.arguments),
            P::ToolAfter | P::SanitizeResult | P::GuardResult => call?.result.as_mut(),
            P::InputNormalise | P::SanitizeInput | P::GuardInput => Some(&mut self.turn.text),
            P::Context | P::ModelRoute | P::CompactionProvide => Some(&mut self.turn.text),
            _ => None,
        }
    }

    /// Records what guardrails said, and gives the reason if they blocked.
    fn guard_verdict(&mut self, call: Option<&Call>, round: &HookRound) -> Option<String> {
        let (point, rules, closed) = (round.point, round.point.rules(), round.closed.as_ref());
        let guards = rules.on_fault == OnFault::Close && point != P::ToolGate;
        if guards && (rules.order == Order::Together || closed.is_some()) {
            let (call, blocked) = (call.map(|call| call.view.id), closed.is_some());
            let reasons = closed.cloned().into_iter().chain(round.remarks()).collect();
            self.desk.record(GuardVerdict { point, call, blocked, reasons });
        }
        closed.filter(|_| guards).map(|closed| closed.reason.clone())
    }

    /// Leaves a point whose hooks have all spoken, if it has any. Gives the next point, if one follows at once.
    fn leave(&mut self, call: Option<&mut Call>, point: P, round: Option<&HookRound>) -> Option<P> {
        match (point, call) {
            (P::GuardInput, _) => self.base.say(Message::User {
                text: self.turn.text.clone(),
                attachments: take(&mut self.turn.attachments),
            }),
            (P::Context, _) => self.inject(round),
            (P::ModelRoute, _) => self.route(round),
            (P::ResponseProcess, _) => self.turn.outcome = Some(TurnOutcome::Answered),
            (P::TurnEnd, _) => self.finish(),
            (P::CompactionBefore, _) => self.begin_compaction(round),
            (P::CompactionProvide, _) => self.summarise(round),
            (P::SessionEnd, _) => {
                self.base.phase = Phase::Stopped;
                self.turn.wait.stage = Stage::Over;
            }
            (P::ToolModify, Some(call)) => self.modified(call, round),
            (P::ToolGate, Some(call)) => self.decide(call, round),
            (P::ToolAfter, Some(call)) => call.enrich(round),
            (P::GuardResult, Some(call)) => self.conclude(call),
            _ => {}
        }
        point.rules().next
    }

    fn inject(&mut self, round: Option<&HookRound>) {
        let (blocks, texts) = round.map(HookRound::injected).unwrap_or_default();
        if !blocks.is_empty() {
            self.desk.record(ContextInjected { blocks });
            self.turn.blocks = Arc::new(texts);
        }
    }
}
