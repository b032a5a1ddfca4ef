//! What a restart leads to: what was in progress is requested again, except what may have had an effect already.

use holdfast_contract::ids::Millis;
use holdfast_contract::problem::Code;
use holdfast_contract::session_frames::StreamInterrupted;

use super::call::{CallStage, CallStep};
use super::hooks::HookPipeline;
use super::turn::{Purpose, TurnStage, TurnStep};

/// The result of a tool that was running and may not run again.
const INTERRUPTED: &str = "interrupted while it ran; its outcome is unknown and it was not run again";

impl TurnStep<'_> {
    /// The session was resumed in the middle of a turn. The time that it was down does not count.
    pub fn recover(&mut self) {
        self.turn.timer = None;
        if self.turn.purpose == Purpose::Answer && self.turn.paused.is_none() {
            let left = self.turn.deadline.since(self.recorder.before);
            self.turn.deadline = self.recorder.now().plus(left);
            self.set_timer(self.recorder.cause);
        }
        match self.turn.stage {
            TurnStage::AskingHooks(_) => self.ask_open_hooks(),
            TurnStage::WaitingForModel { attempt } => {
                self.recorder.record(StreamInterrupted { requested: self.turn.begun });
                self.attempt_model(attempt.saturating_add(1), Millis(0));
            }
            TurnStage::Summarising => self.request_summary(),
            TurnStage::RunningCalls => {
                self.each_call(|call| call.recover());
                self.review_calls(true);
            }
            TurnStage::Ended => {}
        }
    }
}

impl CallStep<'_> {
    fn recover(&mut self) {
        match self.call.stage {
            CallStage::AskingHooks(_) => self.ask_open_hooks(),
            CallStage::CheckingArguments => self.check_arguments(),
            CallStage::AwaitingApproval(_) => self.ask_person(),
            CallStage::Running { attempt } if self.call.may_run_again() => {
                self.dispatch(attempt.saturating_add(1));
            }
            CallStage::Running { .. } => self.fail(Code::ToolInterrupted, INTERRUPTED),
            CallStage::RunningChild { .. } => self.run_child(),
            CallStage::Queued | CallStage::Finished { .. } => {}
        }
    }
}
