//! Durability barriers: which acts wait until the frame that decided them is on disk.

use holdfast_contract::effect::Act;
use holdfast_contract::ids::Seq;

/// The frame that must be durable before this act is performed; none for acts that have no effect outside the process.
pub fn barrier(act: &Act) -> Option<Seq> {
    match act {
        Act::Dispatch(act) if act.spec.effects.leaves_the_machine() => Some(act.decided_by),
        Act::CallModel(act) => Some(act.decided_by),
        Act::AskApproval(act) => Some(act.decided_by),
        Act::OpenChild(act) => Some(act.decided_by),
        Act::Summarise(act) => Some(act.decided_by),
        Act::AskUi { decided_by, .. }
        | Act::Deliver { decided_by, .. }
        | Act::Lifecycle { decided_by, .. }
        | Act::RunTask { decided_by, .. } => Some(*decided_by),
        Act::Activate { pin } => Some(pin.reference.seq),
        Act::Dispatch(_)
        | Act::CallHooks(_)
        | Act::EvaluatePolicy(_)
        | Act::CheckArguments(_)
        | Act::SetTimer { .. }
        | Act::Abort { .. } => None,
    }
}
