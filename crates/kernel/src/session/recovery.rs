//! What a restart leads to: whatever was under way is asked again, except what may have had an effect already.

use super::*;

/// What is said of a tool that was running.
const INTERRUPTED: &str = "interrupted while it ran; its outcome is unknown and it was not run again";

impl StepContext<'_> {
    /// The session was taken up again in the middle of a turn. The time that it was down does not count.
    pub fn recover(&mut self) {
        self.turn.timer = None;
        if self.turn.purpose == Purpose::Answer && self.turn.paused.is_none() {
            let left = self.turn.deadline.since(self.desk.before);
            self.turn.deadline = self.desk.now().plus(left);
            self.set_timer(self.desk.cause);
        }
        match self.turn.wait.stage {
            Stage::Asking(_) => self.ask_open(None),
            Stage::Model(attempt) => {
                self.desk.record(StreamInterrupted { requested: self.turn.wait.begun });
                self.attempt_model(attempt.saturating_add(1), Millis(0));
            }
            Stage::Summarising => self.ask_summary(),
            _ => {
                self.each_call(Self::recover_call);
                self.review_calls(true);
            }
        }
    }

    fn recover_call(&mut self, call: &mut Call) {
        match call.wait.stage {
            Stage::Asking(_) => self.ask_open(Some(call)),
            Stage::Checking => self.check(call),
            Stage::Approving(_) => self.ask_person(call),
            Stage::Running(attempt) if call.may_run_again() => self.dispatch(call, attempt.saturating_add(1)),
            Stage::Running(_) => self.fail(call, Code::ToolInterrupted, INTERRUPTED),
            Stage::Child(..) => self.run_child(call),
            _ => {}
        }
    }
}
