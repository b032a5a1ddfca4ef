//! Child sessions: an agent that another one has called, each with a stream of its own.

use std::sync::Arc;

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::content::Content;
use holdfast_contract::effect::ChildAct;
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::registry::{AgentSpec, Descriptor, Payload};
use holdfast_contract::session_frames::{Parent, SessionSettings, TurnEnded};

use super::{NewSession, TurnReport};
use crate::runtime::{Inner, Runtime};

impl Inner {
    /// Runs a child session to the end of its turn; one that a crash interrupted is resumed.
    pub(crate) async fn run_child(
        self: &Arc<Self>,
        parent: StreamId,
        mut settings: SessionSettings,
        act: ChildAct,
    ) -> Result<TurnReport, Problem> {
        let task = task_text(&act.arguments);
        if self.store.head(&act.child)?.is_some() || self.sessions.get(&act.child).is_some() {
            return self.take_up_child(&act, task).await;
        }
        let agent = act.registry.view.as_ref().and_then(|registry| registry.agent(&act.agent)).cloned();
        let unknown = || Problem::new(Code::ExtensionUnknown, format!("there is no agent `{}`", act.agent));
        let agent = agent.ok_or_else(unknown)?;
        settings.limits = act.limits;
        settings.models = self.models_of_child(agent.answered_by(), settings.models, &act)?;
        settings.tools = agent.tools;
        // A router chooses among models, and never one in place of code.
        settings.authoritative_routing &= agent.code.is_none();
        let new = NewSession {
            id: act.child.clone(),
            origin: act.turn.origin.clone(),
            agent: act.agent.clone(),
            instructions: agent.instructions,
            settings,
        };
        let handle = self.open(new, Some(Parent { stream: parent, seq: act.decided_by }), act.depth)?;
        let report = handle.say_pinned("agent", task, Some(act.registry)).await;
        handle.close().await?;
        report
    }

    /// Gives agents what the settings say of them, before they are registered.
    pub(crate) fn set_agents(&self, descriptors: &mut [Descriptor]) {
        for descriptor in descriptors {
            if let Payload::Agent(agent) = &mut descriptor.payload {
                self.set_agent(agent);
            }
        }
    }

    /// Gives an agent what the settings say of it.
    pub(crate) fn set_agent(&self, agent: &mut AgentSpec) {
        let Some(set) = self.home.agent(&agent.id) else {
            return self.models.configure(&mut agent.models);
        };
        if let Some(model) = &set.model {
            agent.models = vec![model.clone()];
        }
        agent.models.extend(set.fallback.iter().cloned());
        self.models.configure(&mut agent.models);
        if let Some(more) = &set.instructions {
            agent.instructions = Content::text(format!("{}\n\n{more}", agent.instructions.to_text()));
        }
        agent.limits = set.limits.over(agent.limits);
    }

    /// Cancels a child whose parent no longer waits for it, and closes it.
    pub(crate) fn give_up(&self, child: &StreamId) {
        let Some(handle) = self.sessions.get(child) else { return };
        tokio::spawn(async move {
            if handle.cancel("the turn that called it is over").await.is_ok() {
                drop(handle.running_turn().await);
            }
            drop(handle.close().await);
        });
    }

    async fn take_up_child(self: &Arc<Self>, act: &ChildAct, task: Content) -> Result<TurnReport, Problem> {
        let handle = self.resume(&act.child)?;
        let report = match handle.running_turn().await {
            // No turn runs there: it has ended, or has not begun.
            Err(problem) if problem.code == Code::TurnUnexpected => match self.ended_turn(&act.child)? {
                Some(report) => Ok(report),
                None => handle.say_pinned("agent", task, Some(act.registry.clone())).await,
            },
            report => report,
        };
        handle.close().await?;
        report
    }

    /// How a session's last turn ended, from the log.
    pub(crate) fn ended_turn(&self, id: &StreamId) -> Result<Option<TurnReport>, Problem> {
        let ended = self.store.last_of_kind(id, FrameKind::TurnEnded)?;
        ended.map(|frame| self.report(id, &frame)).transpose()
    }

    /// How a turn ended, from the frame that says so.
    pub(crate) fn report(&self, session: &StreamId, frame: &Frame) -> Result<TurnReport, Problem> {
        let Body::TurnEnded(body) = self.store.body(frame)? else {
            return Err(Problem::new(Code::StoreCorrupt, "a turn's end cannot be read"));
        };
        let TurnEnded { outcome, answer, spent, .. } = body;
        let ended = frame.envelope.seq;
        let limit_set_in = self.limit_set_in(&outcome, session, ended);
        let files = self.turn_artifacts(session, ended, &outcome)?;
        Ok(TurnReport { ended, outcome, answer, files, spent, limit_set_in })
    }
}

impl Runtime {
    /// How a turn ended, from the log. The frame is its `turn.ended`.
    pub fn ended_turn(&self, session: &StreamId, ended: Seq) -> Result<TurnReport, Problem> {
        let frame = self.store().frames(session, ended..=ended)?.pop();
        let frame = frame.filter(|frame| frame.envelope.kind == FrameKind::TurnEnded);
        let missing = || Problem::new(Code::StoreMissing, format!("no turn of `{session}` ended at {ended}"));
        self.inner().report(session, &frame.ok_or_else(missing)?)
    }
}

fn task_text(arguments: &Content) -> Content {
    match arguments.value().get("task").and_then(|task| task.as_str()) {
        Some(task) => Content::text(task),
        None => arguments.clone(),
    }
}
