//! Records one step: numbers its frames, and collects them with the acts that the step leads to.

use holdfast_contract::body::Body;
use holdfast_contract::effect::{Act, Effects, Input};
use holdfast_contract::frame::{Draft, FrameSource};
use holdfast_contract::ids::{Millis, Seq};
use holdfast_contract::serde::{Deserialize, Serialize};

/// Where a stream stands: the number of its next frame, and the latest moment it was told.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(crate) struct StreamClock {
    /// The number that the next frame gets.
    pub next: Seq,
    /// The latest moment. It never decreases.
    pub now: Millis,
}

/// The frames and acts of one step.
pub(crate) struct StepRecorder {
    /// Where the stream stands after what was recorded so far.
    pub clock: StreamClock,
    /// The number of the fact that started the step.
    pub cause: Seq,
    /// The moment of the fact before.
    pub before: Millis,
    effects: Effects,
}

impl StepRecorder {
    /// Starts a step at this moment. The first number is reserved for the fact.
    pub fn open(clock: StreamClock, at: Millis) -> Self {
        Self {
            clock: StreamClock { next: clock.next.next(), now: clock.now.max(at) },
            cause: clock.next,
            before: clock.now,
            // Most steps lead to no more than this.
            effects: Effects { frames: Vec::with_capacity(3), acts: Vec::with_capacity(2) },
        }
    }

    /// The step's moment.
    pub fn now(&self) -> Millis {
        self.clock.now
    }

    /// Records a decision, caused by the step's fact.
    pub fn record(&mut self, body: impl Into<Body>) -> Seq {
        let seq = self.clock.next;
        self.clock.next = seq.next();
        self.effects.frames.push(Draft {
            seq,
            at: self.clock.now,
            source: FrameSource::Kernel,
            cause: Some(self.cause),
            body: body.into(),
        });
        seq
    }

    /// Adds an act, if there is one.
    pub fn act(&mut self, act: impl Into<Option<Act>>) {
        self.effects.acts.extend(act.into());
    }

    /// The fact, followed by what it led to.
    pub fn close(mut self, input: Input) -> Effects {
        let fact = Draft {
            seq: self.cause,
            at: self.clock.now,
            source: input.source,
            cause: input.cause,
            body: input.body,
        };
        self.effects.frames.insert(0, fact);
        self.effects
    }
}
