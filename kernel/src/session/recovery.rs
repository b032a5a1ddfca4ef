//! What a restart leads to: whatever was under way is asked again, except what may have had an effect already.

use holdfast_contract::effect::{Act, ApprovalAct};
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::session_frames::StreamInterrupted;
use holdfast_contract::tool::CallStatus;

use super::Way;
use super::call::CallStage;
use super::round::call_act;
use super::turn::{Purpose, Stage, Turn};

impl Way<'_> {
    /// The session was taken up again in the middle of a turn. The time that it was down does not count.
    pub(super) fn recover(&mut self, turn: &mut Turn) {
        if turn.purpose == Purpose::Answer {
            let left = turn.deadline.since(self.desk.before());
            turn.deadline = self.desk.now().plus(left);
            turn.timer = None;
            self.set_timer(turn);
        }
        match &turn.stage {
            Stage::Asking(round) => {
                let round = round.clone();
                for hook in round.being_asked() {
                    self.ask_one(turn, None, &round, &hook);
                }
            }
            Stage::Model { requested } => {
                self.desk.record(StreamInterrupted { requested: *requested });
                turn.attempt += 1;
                self.attempt_model(turn, Millis(0));
            }
            Stage::Summarising { started } => self.desk.act(self.summary_act(turn, *started)),
            Stage::Tools => (0..turn.calls.len()).for_each(|index| self.recover_call(turn, index)),
        }
    }

    fn recover_call(&mut self, turn: &mut Turn, index: usize) {
        let Some(call) = turn.calls.get(index) else { return };
        match &call.stage {
            CallStage::New | CallStage::Settled { .. } => {}
            CallStage::Asking(round) => {
                let round = round.clone();
                for hook in round.being_asked() {
                    self.ask_one(turn, Some(&turn.calls[index]), &round, &hook);
                }
            }
            CallStage::Checking { called } => {
                if let Some(act) = call_act(turn, call, *called) {
                    self.desk.act(Act::CheckArguments(act));
                }
            }
            CallStage::Approving { asked, reasons, .. } => {
                let act = ApprovalAct { decided_by: *asked, call: call.view(), reasons: reasons.clone() };
                self.desk.act(Act::AskApproval(Box::new(act)));
            }
            CallStage::Running { attempt, .. } => {
                let attempt = *attempt + 1;
                match call.implementation.as_ref().is_some_and(|it| it.spec.effects.may_run_again()) {
                    true => self.dispatch(turn, index, attempt),
                    false => {
                        let message =
                            "interrupted while it ran; its outcome is unknown and it was not run again";
                        let fault = Fault::new(Code::ToolInterrupted, message);
                        self.fail(turn, index, CallStatus::Interrupted, fault);
                    }
                }
            }
            CallStage::Child { .. } => self.open_child_again(turn, index),
        }
    }
}
