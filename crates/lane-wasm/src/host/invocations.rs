//! Agents that a guest follows while they answer: the resource `invocation` of the interface `agents`.
//!
//! What a guest is told waits in a queue of one; the agent's model is read no faster than the guest takes it. Every invocation has ended,
//! and is recorded, before the call of the extension ends: a replay runs the call from the record and needs all of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::{HostCall, HostCallKind};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{CallUpdate, Host, Later, UpdateSink};
use serde_json::json;
use tokio::sync::{Notify, mpsc};
use wasmtime::component::{LinkerInstance, Resource, ResourceType};
use wasmtime::{Result, StoreContextMut};

use crate::faults::stop;
use crate::host::link::content;
use crate::instance::guest::Guest;
use crate::wit::abi::{CalledTool, ContentOut, Failure, Update};

/// Invocations that one instance may have open at once.
const MAX_OPEN: usize = 8;

/// The host's type of the resource.
struct Invocation;

/// The invocations of an instance that the guest has a handle of.
#[derive(Default)]
pub(crate) struct Invocations {
    last: u32,
    open: BTreeMap<u32, FollowedAgent>,
}

/// An agent that a guest follows.
struct FollowedAgent {
    /// While it answers.
    answer: Option<Later<Result<Content, Fault>>>,
    /// Once it has.
    outcome: Option<Result<Content, Fault>>,
    updates: mpsc::Receiver<CallUpdate>,
    cancel: Arc<Notify>,
}

/// The host's end of the queue.
struct GuestUpdates {
    queue: mpsc::Sender<CallUpdate>,
    cancel: Arc<Notify>,
}

impl UpdateSink for GuestUpdates {
    fn send(&self, update: CallUpdate) -> Later<()> {
        let queue = self.queue.clone();
        // A guest that has dropped its handle needs no updates.
        Box::pin(async move { drop(queue.send(update).await) })
    }

    fn cancelled(&self) -> Later<()> {
        let cancel = self.cancel.clone();
        Box::pin(async move { cancel.notified().await })
    }
}

impl FollowedAgent {
    fn begin(host: &Arc<dyn Host>, call: HostCall) -> Self {
        let (queue, updates) = mpsc::channel(1);
        let cancel = Arc::<Notify>::default();
        let sink = GuestUpdates { queue, cancel: cancel.clone() };
        let answer = host.call_streamed(call, None, Arc::new(sink));
        Self { answer: Some(answer), outcome: None, updates, cancel }
    }

    /// What happens next; nothing once there is the answer and all before it was taken.
    async fn next(&mut self) -> Option<CallUpdate> {
        std::future::poll_fn(|context| {
            if let Some(answer) = &mut self.answer
                && let Poll::Ready(outcome) = answer.as_mut().poll(context)
            {
                (self.answer, self.outcome) = (None, Some(outcome));
            }
            match self.updates.poll_recv(context) {
                Poll::Ready(Some(update)) => Poll::Ready(Some(update)),
                _ if self.answer.is_none() => Poll::Ready(None),
                _ => Poll::Pending,
            }
        })
        .await
    }

    async fn finish(&mut self) -> Result<Content, Fault> {
        while self.next().await.is_some() {}
        self.outcome.clone().unwrap_or_else(|| Err(over()))
    }

    /// Ends it, if it has not ended, and waits until that is recorded.
    async fn end(&mut self) {
        if self.answer.is_some() {
            self.cancel.notify_one();
            // Nobody asks for the answer any more.
            let _ = self.finish().await;
        }
    }
}

fn over() -> Fault {
    Fault::new(Code::TurnCancelled, "the call is over in which the agent was asked")
}

impl Invocations {
    fn add(&mut self, agent: FollowedAgent) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.open.insert(self.last, agent);
        self.last
    }

    /// The call ends in which they were begun: ends them all, whatever the guest does with the handles later.
    pub(crate) async fn settle(&mut self) {
        for agent in self.open.values_mut() {
            agent.end().await;
            // Whether one had ended before is a matter of time, so nothing of it is left.
            agent.updates.close();
            while agent.updates.try_recv().is_ok() {}
            (agent.answer, agent.outcome) = (None, Some(Err(over())));
        }
    }
}

pub(super) fn invocations(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    at.resource_async("invocation", ResourceType::host::<Invocation>(), |mut store, handle| {
        Box::new(async move {
            if let Some(mut agent) = store.data_mut().invocations.open.remove(&handle) {
                agent.end().await;
                store.set_epoch_deadline(1);
            }
            Ok(())
        })
    })?;
    type Asked = (Option<String>, String);
    at.func_wrap_async("invoke-streamed", |mut store: StoreContextMut<'_, Guest>, (agent, task): Asked| {
        Box::new(async move {
            let guest = store.data_mut();
            let host = guest.host()?;
            if guest.invocations.open.len() >= MAX_OPEN {
                let message = format!("{MAX_OPEN} invocations are open already; drop one first");
                return Ok((Err(Failure::Failed(message)),));
            }
            let arguments = json!({ "agent": agent, "task": task });
            let call = HostCall::of(HostCallKind::AgentInvoke, arguments);
            let handle = guest.invocations.add(FollowedAgent::begin(&host, call));
            Ok((Ok(Resource::<Invocation>::new_own(handle)),))
        })
    })?;
    at.func_wrap_async(
        "[method]invocation.next",
        |mut store: StoreContextMut<'_, Guest>, (handle,): Handle| {
            Box::new(async move {
                let update = followed(&mut store, &handle)?.next().await;
                store.set_epoch_deadline(1);
                if update.is_none() {
                    // What is told is bounded; asking again at the end is not.
                    store.data_mut().count()?;
                }
                Ok((update.map(Update::from),))
            })
        },
    )?;
    at.func_wrap_async(
        "[method]invocation.answer",
        |mut store: StoreContextMut<'_, Guest>, (handle,): Handle| {
            Box::new(async move {
                store.data_mut().count()?;
                let answer = followed(&mut store, &handle)?.finish().await;
                store.set_epoch_deadline(1);
                Ok((answer.map(content).map_err(Failure::from) as Result<ContentOut, Failure>,))
            })
        },
    )
}

type Handle = (Resource<Invocation>,);

fn followed<'a>(
    store: &'a mut StoreContextMut<'_, Guest>,
    handle: &Resource<Invocation>,
) -> Result<&'a mut FollowedAgent> {
    let found = store.data_mut().invocations.open.get_mut(&handle.rep());
    found.ok_or_else(|| stop(Code::ComponentTrap, "it uses an invocation that there is not"))
}

impl From<CallUpdate> for Update {
    fn from(update: CallUpdate) -> Self {
        match update {
            CallUpdate::Text(text) => Self::Text(text.to_text()),
            CallUpdate::ToolCall { tool, arguments } => Self::ToolCall(CalledTool {
                tool: tool.as_str().to_owned(),
                arguments: arguments.json().to_owned(),
            }),
        }
    }
}

#[cfg(test)]
#[path = "invocations_tests.rs"]
mod tests;
