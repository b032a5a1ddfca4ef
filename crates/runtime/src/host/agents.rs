//! The capability `agents`: tasks for agents, and agents that are invoked for their answer.

use std::sync::Arc;

use holdfast_bus::{NewEvent, topics as known};
use holdfast_contract::content::Content;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::host_call::arguments::TaskArguments;
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::Later;

use super::{Caller, failed};
use crate::messaging::AgentTask;
use crate::runtime::Inner;

impl Inner {
    pub(super) fn agent_task(
        self: &Arc<Self>,
        caller: &Caller,
        arguments: TaskArguments,
    ) -> Later<Result<Content, Fault>> {
        self.start_task(caller, known::AGENT_TASK, arguments)
    }

    pub(super) fn agent_background(
        self: &Arc<Self>,
        caller: &Caller,
        arguments: TaskArguments,
    ) -> Later<Result<Content, Fault>> {
        self.start_task(caller, known::AGENT_BACKGROUND, arguments)
    }

    fn start_task(
        self: &Arc<Self>,
        caller: &Caller,
        topic: &str,
        arguments: TaskArguments,
    ) -> Later<Result<Content, Fault>> {
        let TaskArguments { task: prompt, agent, channel: channel_id, user: user_id, correlation } =
            arguments;
        let depth = match self.nested(caller) {
            Ok((_, depth)) => depth,
            Err(fault) => return failed(fault),
        };
        let payload = Content::of(&AgentTask { prompt, agent, channel_id, user_id, depth });
        let event = NewEvent { correlation, ..NewEvent::new(topic, payload) };
        self.published(event.source(FrameSource::Extension(caller.extension.clone())))
    }

    /// Runs an agent and returns its answer. Without a timeout the agent's own limits bound it.
    pub(super) fn agent_invoke(
        self: &Arc<Self>,
        caller: Caller,
        arguments: TaskArguments,
        timeout: Option<Millis>,
    ) -> Later<Result<Content, Fault>> {
        let inner = self.clone();
        let late = timeout.map(|timeout| (timeout, self.clock.sleep(timeout)));
        Box::pin(async move {
            let answer = inner.invoke(&caller, arguments.agent, arguments.task);
            match late {
                None => answer.await,
                Some((timeout, late)) => tokio::select! {
                    biased;
                    answer = answer => answer,
                    () = late => {
                        let message = format!("the agent did not answer within {} ms", timeout.0);
                        Err(Fault::new(Code::ExtensionFault, message))
                    }
                },
            }
        })
    }
}
