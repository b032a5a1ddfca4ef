//! The desk: where a step's effects pile up and frames get their numbers.

use holdfast_contract::body::Body;
use holdfast_contract::effect::{Act, Effect, Input};
use holdfast_contract::frame::{Draft, Source};
use holdfast_contract::ids::{Millis, Seq};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::serde::{Deserialize, Serialize};

/// A stream's counter and the latest moment that it heard of.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(crate) struct Clerk {
    pub next: Seq,
    pub now: Millis,
}

/// One step's paper: the fact that started it, and what it leads to.
pub(crate) struct Desk<'a> {
    clerk: &'a mut Clerk,
    cause: Seq,
    before: Millis,
    effects: Vec<Effect>,
}

impl<'a> Desk<'a> {
    /// Records the fact that starts the step. Time never runs backwards within a stream.
    pub fn open(clerk: &'a mut Clerk, input: Input) -> Self {
        let before = clerk.now;
        clerk.now = before.max(input.at);
        let seq = clerk.next;
        clerk.next = seq.next();
        let Input { at: _, source, cause, body } = input;
        let draft = Draft { seq, at: clerk.now, source, cause, body };
        let mut effects = Vec::with_capacity(6);
        effects.push(Effect::Record(draft));
        Self { clerk, cause: seq, before, effects }
    }

    /// Records a decision, caused by the step's fact.
    pub fn record(&mut self, body: impl Into<Body>) -> Seq {
        let seq = self.clerk.next;
        self.clerk.next = seq.next();
        let draft = Draft {
            seq,
            at: self.clerk.now,
            source: Source::Kernel,
            cause: Some(self.cause),
            body: body.into(),
        };
        self.effects.push(Effect::Record(draft));
        seq
    }

    pub fn act(&mut self, act: Act) {
        self.effects.push(Effect::Act(act));
    }

    pub fn now(&self) -> Millis {
        self.clerk.now
    }

    /// The moment of the fact before.
    pub fn before(&self) -> Millis {
        self.before
    }

    /// The number of the fact that started the step.
    pub fn cause(&self) -> Seq {
        self.cause
    }

    pub fn close(self) -> Vec<Effect> {
        self.effects
    }
}

/// The answer to an input that does not fit.
pub(crate) fn refuse(code: Code, message: impl Into<String>) -> Vec<Effect> {
    vec![Effect::Refuse(Fault::new(code, message))]
}
