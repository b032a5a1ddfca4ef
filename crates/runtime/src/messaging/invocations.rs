//! What extensions ask for in a session of its own, for the answer: an agent's work, a tool's result, a model's text.
//!
//! The session is recorded like any other: a tool passes the schema check, the policy, the gates and the approval, and a model is asked
//! within the budget. It is nested under the caller's session, if there is one, and charged to it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::content::Content;
use holdfast_contract::ids::{AgentId, StreamId, ToolName};
use holdfast_contract::message::{AskedCall, Origin};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::session_frames::{Parent, StreamedUpdates, TurnOutcome};
use holdfast_contract::wire::{CallUpdate, UpdateSink};
use holdfast_model::direct::NAME as DIRECT;
use parking_lot::Mutex;
use serde_json::Value;

use super::turns::answer_of;
use super::{OutputStream, StreamChunk};
use crate::host::Caller;
use crate::runtime::Inner;
use crate::session::{NewSession, SessionHandle, TurnReport};

/// What an extension asks for.
pub(crate) enum Invocation {
    /// An agent's answer; the main agent's if none is named.
    Agent {
        /// The agent.
        agent: Option<AgentId>,
        /// What it is to do.
        task: String,
    },
    /// The result of a tool that the extension's agent has.
    Tool {
        /// The tool.
        tool: ToolName,
        /// Its arguments.
        arguments: Value,
    },
    /// The text of the model that an agent uses; the extension's own agent if none is named.
    Model {
        /// The agent.
        agent: Option<AgentId>,
        /// The instructions.
        instructions: String,
        /// What the model is asked.
        prompt: String,
    },
}

impl Invocation {
    /// What is said in the session.
    fn text(&self) -> String {
        match self {
            Self::Agent { task, .. } => task.clone(),
            Self::Tool { tool, arguments } => format!("/{tool} {arguments}"),
            Self::Model { prompt, .. } => prompt.clone(),
        }
    }
}

/// The updates that one call passes on and records at most, and their bytes.
const MAX_UPDATES: usize = 4096;
const MAX_UPDATE_BYTES: u64 = 1 << 20;

/// Keeps what an extension is told while a call of it is served, for the frame with the answer. An update is kept once the extension
/// has it, so that a replay tells the same.
pub(crate) struct RecordedUpdates {
    sink: Arc<dyn UpdateSink>,
    kept: Mutex<KeptUpdates>,
}

#[derive(Default)]
struct KeptUpdates {
    streamed: StreamedUpdates,
    bytes: u64,
}

impl RecordedUpdates {
    /// For a call that is the session's streamed call of this number.
    pub(crate) fn new(sink: Arc<dyn UpdateSink>, begun: u32) -> Arc<Self> {
        let streamed = StreamedUpdates { begun, ..StreamedUpdates::default() };
        Arc::new(Self { sink, kept: Mutex::new(KeptUpdates { streamed, bytes: 0 }) })
    }

    /// What was passed on.
    pub(crate) fn streamed(&self) -> StreamedUpdates {
        self.kept.lock().streamed.clone()
    }

    /// Waits for an answer for as long as the extension wants it.
    pub(crate) async fn wanted(
        &self,
        answer: impl Future<Output = Result<Content, Fault>>,
    ) -> Result<Content, Fault> {
        tokio::select! {
            biased;
            answer = answer => answer,
            () = self.sink.cancelled() => Err(unwanted()),
        }
    }

    async fn pass_on(&self, update: CallUpdate) {
        let bytes = match &update {
            CallUpdate::Text(content) | CallUpdate::ToolCall { arguments: content, .. } => {
                content.approximate_bytes()
            }
        };
        {
            let mut kept = self.kept.lock();
            kept.bytes = kept.bytes.saturating_add(bytes);
            // Once one is left out, so are all that follow: what is told has no gap.
            let is_full = kept.streamed.left_out > 0 || kept.streamed.updates.len() >= MAX_UPDATES;
            if is_full || kept.bytes > MAX_UPDATE_BYTES {
                kept.streamed.left_out += 1;
                return;
            }
        }
        self.sink.send(update.clone()).await;
        self.kept.lock().streamed.updates.push(update);
    }
}

/// Why a call ends whose answer nobody wants any more.
pub(crate) fn unwanted() -> Fault {
    Fault::new(Code::TurnCancelled, "the caller has stopped waiting")
}

/// A session with a waiting caller. Dropped before it has ended, because its caller was late or is gone, it is cancelled.
struct WaitingSession<'a> {
    inner: &'a Arc<Inner>,
    session: Option<StreamId>,
}

impl Drop for WaitingSession<'_> {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            self.inner.give_up(session);
        }
    }
}

impl Inner {
    /// Runs what an extension asks for, in a session of its own, and returns the answer.
    pub(crate) async fn invoke(
        self: &Arc<Self>,
        caller: &Caller,
        asked: Invocation,
    ) -> Result<Content, Fault> {
        let (parent, depth) = self.nested(caller)?;
        let count = self.messaging.opened.fetch_add(1, Ordering::Relaxed);
        let chance = self.entropy.draw_hex(4);
        let id = format!("agent.{}.{}-{count}-{chance}", caller.extension.id, self.clock.now().0);
        let session: StreamId = id.into();
        let mut under_way = WaitingSession { inner: self, session: Some(session.clone()) };
        let run = async {
            let new = self.invoked_session(caller, &asked, session.clone())?;
            let channel = new.origin.channel.clone();
            let handle = self.open(new, parent, depth)?;
            let report = said_to(&handle, &channel, asked.text(), caller.updates.as_ref()).await;
            handle.close().await?;
            report
        };
        let report = run.await.map_err(|problem| problem.to_fault());
        under_way.session = None;
        let report = report?;
        if let Some(budget) = &caller.budget {
            budget.charge(report.spent);
        }
        if let (Invocation::Tool { .. }, Some(fault)) = (&asked, self.failed_call(&session)?) {
            return Err(fault);
        }
        match report.outcome {
            TurnOutcome::Answered => Ok(report.answer.unwrap_or_default()),
            TurnOutcome::Failed(fault) => Err(fault),
            _ => Err(Fault::new(Code::ToolFailed, answer_of(&report))),
        }
    }

    /// The session for what is asked for: its agent, tools and models, with what is left of the caller's budget.
    fn invoked_session(
        self: &Arc<Self>,
        caller: &Caller,
        asked: &Invocation,
        id: StreamId,
    ) -> Result<NewSession, Problem> {
        let origin = Origin::extension(&caller.extension.id);
        let mut new = match asked {
            Invocation::Agent { agent, .. } => self.agent_session(id, origin, agent.as_ref())?,
            Invocation::Tool { .. } => {
                let mut new = self.main_session(id, origin, None)?;
                let own = self.own_agent(&caller.extension);
                new.settings.tools = Some(own.tools.unwrap_or_default());
                new.settings.models = vec![DIRECT.into()];
                new.settings.authoritative_routing = false;
                new.settings.limits = own.limits;
                // One for the call, and one for its result.
                new.settings.limits.max_turns = 2;
                (new.agent, new.instructions) = (own.id, Content::default());
                new
            }
            Invocation::Model { agent, instructions, .. } => {
                let own = self.own_agent(&caller.extension);
                let models = self.models_for(caller, agent.as_ref())?;
                let mut new = self.main_session(id, origin, None)?;
                new.settings.tools = Some(Vec::new());
                new.settings.models = models;
                new.settings.limits = own.limits;
                new.settings.limits.max_turns = 1;
                new.agent = agent.clone().unwrap_or(own.id);
                new.instructions = Content::text(instructions.as_str());
                new
            }
        };
        if let Some(session) = &caller.session {
            let inherited = self.session_settings(session)?;
            new.settings.workspace = inherited.workspace.clone();
            new.settings.pinned_profile = inherited.pinned_profile;
        }
        if let Some(budget) = &caller.budget {
            new.settings.limits = budget.left_for(new.settings.limits);
        }
        Ok(new)
    }

    /// Why the tool call of a session failed, if it did.
    fn failed_call(&self, session: &StreamId) -> Result<Option<Fault>, Fault> {
        let settled = self.store.last_of_kind(session, FrameKind::ToolSettled);
        let Some(frame) = settled.map_err(|problem| problem.to_fault())? else { return Ok(None) };
        match self.store.body(&frame).map_err(|problem| problem.to_fault())? {
            Body::ToolSettled(settled) => Ok(settled.fault),
            _ => Ok(None),
        }
    }

    /// What a session is under that an extension asks for, and how deep it is.
    pub(crate) fn nested(&self, caller: &Caller) -> Result<(Option<Parent>, u8), Fault> {
        let Some(stream) = caller.session.clone() else { return Ok((None, 0)) };
        let started = self.session_start(&stream).map_err(|problem| problem.to_fault())?;
        let depth = started.depth;
        if depth >= started.settings.depth_cap {
            let message = format!("an agent that `{}` asks would be {} deep", caller.extension.id, depth + 1);
            return Err(Fault::new(Code::ChildDepth, message));
        }
        let seq = caller.under.unwrap_or_default();
        Ok((Some(Parent { stream, seq }), depth + 1))
    }
}

/// Says something in a session and waits for the answer. What happens meanwhile is sent to who wants to know.
async fn said_to(
    handle: &SessionHandle,
    channel: &str,
    text: String,
    updates: Option<&Arc<RecordedUpdates>>,
) -> Result<TurnReport, Problem> {
    let text = Content::text(text);
    let Some(updates) = updates else { return handle.say_pinned(channel, text, None).await };
    let output = Arc::<OutputStream>::default();
    let answer = async {
        let report = handle.say_shown(channel, text, output.clone()).await;
        output.close();
        report
    };
    let shown = async {
        while let Some(piece) = output.next().await {
            let update = match piece {
                StreamChunk::Text(text) => CallUpdate::Text(Content::text(text)),
                StreamChunk::Call(AskedCall { tool, arguments, .. }) => {
                    CallUpdate::ToolCall { tool, arguments }
                }
                StreamChunk::Begins | StreamChunk::Status(..) => continue,
            };
            updates.pass_on(update).await;
        }
    };
    tokio::join!(answer, shown).0
}

#[cfg(test)]
#[path = "invocations_tests.rs"]
mod tests;
