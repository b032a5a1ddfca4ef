//! The handle of the system's actor.

use holdfast_contract::body::Body;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::Seq;
use holdfast_contract::problem::{Code, Problem};
use tokio::sync::{mpsc, oneshot};

use super::SystemCommand;
use crate::session::ReplySender;

/// Sends facts and commands to the system's actor. Once the actor has ended, the process is about to exit, and what is sent is
/// dropped.
pub(crate) struct SystemHandle(mpsc::UnboundedSender<SystemCommand>);

impl SystemHandle {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<SystemCommand>) {
        let (sender, commands) = mpsc::unbounded_channel();
        (Self(sender), commands)
    }

    /// Reports a fact of the host.
    pub(crate) fn tell(&self, body: impl Into<Body>) {
        self.send(SystemCommand::Fact(Box::new(body.into())));
    }

    /// Reports a fact of this source, and the frame that caused it.
    pub(crate) fn tell_of(&self, source: FrameSource, cause: Option<Seq>, body: impl Into<Body>) {
        self.send(SystemCommand::Said(source, cause, Box::new(body.into())));
    }

    pub(crate) fn send(&self, command: SystemCommand) {
        drop(self.0.send(command));
    }

    /// Sends a command and waits for the reply.
    pub(crate) async fn ask<T>(
        &self,
        command: impl FnOnce(ReplySender<T>) -> SystemCommand,
    ) -> Result<T, Problem> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply));
        answer.await.map_err(|_| Problem::new(Code::Internal, "the system's actor is gone"))?
    }
}
