//! A turn under way: what it and its calls wait for, how facts reach them, and how a turn ends.

use super::*;

/// A turn under way.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde", default)]
pub(super) struct Turn {
    pub purpose: Purpose,
    pub context: TurnView,
    pub wait: Wait,
    pub text: Content,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Artifact>,
    pub blocks: Arc<Vec<Content>>,
    pub notes: Vec<Content>,
    pub calls: Vec<Call>,
    pub answer: Option<Content>,
    pub outcome: Option<TurnOutcome>,
    pub spent: Spent,
    /// The models to try, best first; the first is the one in use.
    pub models: Vec<ModelName>,
    /// The time that it may take, and which limit says so.
    pub time_limit: TimeLimit,
    pub deadline: Millis,
    /// Since when a person is asked and the turn's time stands still.
    pub paused: Option<Millis>,
    pub timer: Option<Seq>,
    /// The `compaction.started` frame.
    pub compaction: Seq,
    pub keep: u32,
    pub instructions: Vec<String>,
}

/// What a turn is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) enum Purpose {
    #[default]
    Answer,
    Compact,
    End,
}

/// What a turn or a call waits for, and the frame that began it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct Wait {
    pub begun: Seq,
    pub stage: Stage,
}

/// The stages of a turn, then those of a call.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) enum Stage {
    /// A turn waits for its calls; a call has not been taken up.
    #[default]
    Idle,
    /// Either asks hooks.
    Asking(HookRound),
    /// A model is asked; which attempt it is.
    Model(u32),
    Summarising,
    /// The turn has ended with this step.
    Over,
    Checking,
    Approving(Vec<GateReason>),
    /// A tool runs; which attempt it is.
    Running(u32),
    Child(StreamId, Limits),
    Settled(Content, CallStatus),
}

/// A step on its way through a turn.
pub(super) struct StepContext<'a> {
    pub desk: &'a mut StepRecorder,
    pub base: &'a mut Base,
    pub turn: &'a mut Turn,
}

impl StepContext<'_> {
    /// Hands a fact to what waits for it; nothing if nothing does.
    pub fn take(&mut self, body: &Body, cause: Option<Seq>) -> Option<()> {
        match body {
            Body::SessionResumed(_) => self.recover(),
            Body::SessionCancelled(fact) if self.turn.purpose != Purpose::End => {
                self.end_early(TurnOutcome::Cancelled { reason: fact.reason.clone() });
            }
            Body::TimerFired(fact) if self.turn.timer == Some(fact.timer) => self.time_is_up(),
            _ if matches!(self.turn.wait.stage, Stage::Idle) => self.tell_call(body, cause)?,
            _ => self.hear(None, body, cause).then_some(())?,
        }
        Some(())
    }

    /// Gives the call that a fact is about what it waits for; nothing if it does not wait for this.
    fn tell_call(&mut self, body: &Body, cause: Option<Seq>) -> Option<()> {
        let calls = &self.turn.calls;
        let place = match body {
            Body::ApprovalAnswered(fact) => calls.iter().position(|call| call.wait.begun == fact.approval)?,
            body => calls.binary_search_by_key(&body.call()?, |call| call.view.id).ok()?,
        };
        let asks = |call: &Call| matches!(call.wait.stage, Stage::Approving(_));
        let mut calls = take(&mut self.turn.calls);
        let heard = calls.get_mut(place).and_then(|call| {
            let before = asks(call);
            self.hear(Some(call), body, cause).then(|| before || asks(call))
        });
        self.turn.calls = calls;
        self.review_calls(heard?);
        Some(())
    }

    /// Gives the turn, or a call, the answer that it waits for; false if this fact is not that.
    fn hear(&mut self, mut call: Option<&mut Call>, body: &Body, cause: Option<Seq>) -> bool {
        use Body::*;
        let wait = self.wait(call.as_deref_mut());
        let asked = if let ApprovalAnswered(fact) = body { Some(fact.approval) } else { cause };
        if asked != Some(wait.begun) {
            return false;
        }
        let said = HookAnswers::of(body);
        match (take(&mut wait.stage), body, call) {
            (Stage::Asking(round), _, call) if said.is_some() => {
                return said.is_some_and(|said| self.heard(call, round, said));
            }
            (Stage::Model(_), ModelReturned(fact), _) => self.model_returned(fact),
            (Stage::Model(attempt), StreamGuarded(fact), _) => self.stream_guarded(attempt, fact),
            (Stage::Model(attempt), ModelFailed(fact), _) => self.model_failed(attempt, fact),
            (Stage::Summarising, CompactionProvided(fact), _) => self.summarised(fact),
            (Stage::Checking, ToolChecked(fact), Some(call)) if fact.call == call.view.id => {
                self.checked(call, &fact.outcome);
            }
            (Stage::Approving(reasons), ApprovalAnswered(fact), Some(call)) => {
                self.answered(call, reasons, &fact.answer);
            }
            (Stage::Running(_), ToolReturned(fact), Some(call)) if fact.call == call.view.id => {
                self.returned(call, &fact.outcome);
            }
            (Stage::Child(child, _), ChildEnded(fact), Some(call)) if fact.child == child => {
                let Spent { tokens, cost_micros, .. } = fact.spent;
                self.charge(Spent { tokens, cost_micros, ..Spent::default() });
                self.returned(call, &fact.outcome);
            }
            (stage, _, call) => {
                self.wait(call).stage = stage;
                return false;
            }
        }
        true
    }

    /// What a turn, or a call, waits for.
    pub fn wait<'b>(&'b mut self, call: Option<&'b mut Call>) -> &'b mut Wait {
        call.map_or(&mut self.turn.wait, |call| &mut call.wait)
    }

    /// Does something with each call, while they are out of the turn.
    pub fn each_call(&mut self, mut each: impl FnMut(&mut Self, &mut Call)) {
        let mut calls = take(&mut self.turn.calls);
        calls.iter_mut().for_each(|call| each(self, call));
        self.turn.calls = calls;
    }

    /// What follows from what became of the calls: the clock stands still while a person is asked, and when the last call is
    /// settled the model hears of all of them.
    pub fn review_calls(&mut self, asking_changed: bool) {
        // From the end: calls mostly settle in order, so the last one tells at once.
        let stages = || self.turn.calls.iter().rev().map(|call| &call.wait.stage);
        let settled = stages().all(|stage| matches!(stage, Stage::Settled(..)));
        if asking_changed {
            self.pause(stages().any(|stage| matches!(stage, Stage::Approving(_))));
        }
        if settled {
            self.report_calls();
            self.request_model();
        }
    }

    /// Shows the model what the calls came to, in the order it asked.
    fn report_calls(&mut self) {
        for Call { view, model_id, wait, artifacts: attachments, .. } in take(&mut self.turn.calls) {
            if let Stage::Settled(content, status) = wait.stage {
                let failed = status != CallStatus::Done;
                self.base.say(Message::Tool { call: view.id, model_id, content, failed, attachments });
            }
        }
    }

    /// Ends the turn before its time: whatever is under way is aborted, open calls are settled, and the last hooks are heard.
    pub fn end_early(&mut self, outcome: TurnOutcome) {
        if matches!(self.turn.wait.stage, Stage::Idle) {
            self.each_call(Self::cancel_call);
            self.report_calls();
        } else {
            self.desk.act(Act::Abort { begun_by: self.turn.wait.begun });
        }
        if self.turn.purpose != Purpose::Answer {
            self.turn.wait.stage = Stage::Over;
        } else if self.turn.outcome.is_some() {
            self.finish();
        } else {
            let cancelled = matches!(outcome, TurnOutcome::Cancelled { .. });
            self.turn.answer = None;
            self.turn.outcome = Some(outcome);
            self.proceed(None, if cancelled { P::SessionCancel } else { P::TurnEnd });
        }
    }

    /// The last hooks were heard: the turn is over, and whoever waits for it is told.
    pub fn finish(&mut self) {
        self.say_notes();
        self.charge(Spent { time: self.elapsed(), ..Spent::default() });
        let Turn { answer, outcome, context, spent, wait, .. } = &mut *self.turn;
        wait.stage = Stage::Over;
        let (answer, outcome) = (answer.take(), outcome.take().unwrap_or(TurnOutcome::Answered));
        if let Some(text) = answer.clone() {
            self.base.say(Message::Assistant { text, reasoning: None, calls: Vec::new() });
        }
        let (turn, spent) = (context.turn, *spent);
        let ended = TurnEnded { turn, outcome: outcome.clone(), answer: answer.clone(), spent };
        let decided_by = self.desk.record(ended);
        self.desk.act(Act::Deliver { decided_by, outcome, answer });
    }

    /// Puts what extensions injected meanwhile into the conversation.
    pub fn say_notes(&mut self) {
        for text in take(&mut self.turn.notes) {
            self.base.say(Message::Note { text });
        }
    }
}
