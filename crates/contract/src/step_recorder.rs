//! The desk: where a step's effects pile up and frames get their numbers.

use serde::{Deserialize, Serialize};

use crate::body::Body;
use crate::effect::{Act, Effects, Input};
use crate::frame::{Draft, FrameSource};
use crate::ids::{Millis, Seq};

/// A stream's counter and the latest moment that it heard of.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct StreamClock {
    /// The number that the next frame gets.
    pub next: Seq,
    /// The moment.
    pub now: Millis,
}

/// One step's paper: the number of the fact that started it, and what it leads to.
pub struct StepRecorder {
    /// The stream's clerk after the step.
    pub clerk: StreamClock,
    /// The number of the fact that started the step.
    pub cause: Seq,
    /// The moment of the fact before.
    pub before: Millis,
    effects: Effects,
}

impl StepRecorder {
    /// Keeps the first number for the fact. Time never runs backwards within a stream.
    pub fn open(StreamClock { next, now }: StreamClock, at: Millis) -> Self {
        let clerk = StreamClock { next: next.next(), now: now.max(at) };
        // Most steps lead to no more than this.
        let effects = Effects { frames: Vec::with_capacity(3), acts: Vec::with_capacity(2) };
        Self { clerk, cause: next, before: now, effects }
    }

    /// Records a decision, caused by the step's fact.
    pub fn record(&mut self, body: impl Into<Body>) -> Seq {
        let StreamClock { next: seq, now: at } = self.clerk;
        self.clerk.next = seq.next();
        let (source, cause) = (FrameSource::Kernel, Some(self.cause));
        self.effects.frames.push(Draft { seq, at, source, cause, body: body.into() });
        seq
    }

    /// Has something done, if there is anything to do.
    pub fn act(&mut self, act: impl Into<Option<Act>>) {
        self.effects.acts.extend(act.into());
    }

    /// The fact, and then what it led to.
    pub fn close(mut self, Input { source, cause, body, .. }: Input) -> Effects {
        let fact = Draft { seq: self.cause, at: self.clerk.now, source, cause, body };
        self.effects.frames.insert(0, fact);
        self.effects
    }
}
