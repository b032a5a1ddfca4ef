//! Turns that no surface asked for: of a user on a channel, of a task, of an extension that asks the agent.
//!
//! A turn that an event leads to is run once, however often the event is handed over: the event's id stands in the session as the
//! message's, and a repeat resumes the turn that it finds there.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdfast_bus::{Delivery, Subscription};
use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::content::Content;
use holdfast_contract::effect::ChildAct;
use holdfast_contract::hook::Artifact;
use holdfast_contract::ids::{AgentId, ExtensionId, Millis, ModelName, Seq, StreamId};
use holdfast_contract::message::Origin;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::role::Role;
use holdfast_contract::session_frames::{Parent, TurnOutcome};
use holdfast_contract::system_frames::ExtensionFaulted;
use serde_json::json;

use super::OutputStream;
use super::routes::SessionRequest;
use super::topics::{UserNotice, message_text};
use crate::history::find_last_before;
use crate::host::Caller;
use crate::runtime::{Inner, Runtime};
use crate::session::{NewSession, TurnReport};

/// How long a turn that an event led to is waited for at a time. One that takes longer goes on, and is waited for again.
const TURN_WAIT: Millis = Millis(3_600_000);

/// A subscription whose events lead to turns.
pub(super) fn patient(subscription: Subscription) -> Subscription {
    Subscription { deadline: TURN_WAIT, max_attempts: 24, ..subscription }
}

/// Sessions under one name, of which all but the last have ended.
const MAX_ENDED_SESSIONS: usize = 1_000;

/// A turn to be run.
pub(super) struct TurnRequest {
    /// In which session; it is opened if it is not there.
    pub session: StreamId,
    /// Where it comes from.
    pub origin: Origin,
    /// Whose turn it is in a session that is opened; the main agent's if none is named.
    pub agent: Option<AgentId>,
    /// What is said.
    pub text: String,
    /// Files that came with it.
    pub attachments: Vec<Artifact>,
    /// The event that caused it, if that can be delivered again.
    pub message: Option<EventMessage>,
    /// How deep a session that is opened is under others.
    pub depth: u8,
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

/// The event that caused a turn.
pub(super) struct EventMessage {
    id: String,
    repeat: bool,
    /// Where its turn is shown while it runs.
    output: Option<Arc<OutputStream>>,
}

impl EventMessage {
    /// The same with a turn that is shown there.
    pub(super) fn shown(self, output: Option<Arc<OutputStream>>) -> Self {
        Self { output, ..self }
    }
}

impl From<&Delivery> for EventMessage {
    fn from(delivery: &Delivery) -> Self {
        Self { id: delivery.event.id.to_string(), repeat: delivery.repeat, output: None }
    }
}

/// The session of a task, named after the event that caused it.
pub(super) fn session_for(delivery: &Delivery) -> StreamId {
    format!("task.{}", delivery.event.id.to_string().replace('/', "-")).into()
}

/// What a user is told of a turn.
pub(super) fn answer_of(report: &TurnReport) -> String {
    if let Some(answer) = &report.answer {
        return answer.to_text();
    }
    match &report.outcome {
        TurnOutcome::Answered => String::new(),
        TurnOutcome::Cancelled { reason } => format!("This was cancelled: {reason}"),
        TurnOutcome::Limited(limit) => {
            format!("This was ended by a limit on {}.", limit.with_place(report.limit_set_in.as_deref()))
        }
        TurnOutcome::Blocked { reason } => format!("This was blocked: {reason}"),
        TurnOutcome::Failed(fault) => format!("This could not be answered: {fault}"),
    }
}

/// The turn that a message led to when it came before.
enum EarlierTurn {
    None,
    Running,
    Ended(Box<TurnReport>),
}

impl Inner {
    /// Runs a turn. If its session has ended, the next one of its name is used.
    pub(super) async fn turn(self: &Arc<Self>, mut request: TurnRequest) -> Result<TurnReport, Fault> {
        let name = request.session.clone();
        for next in 2..MAX_ENDED_SESSIONS {
            match self.turn_in(&request).await {
                Err(problem) if problem.code == Code::SessionEnded && self.has_ended(&request.session)? => {
                    request.session = format!("{name}.{next}").into();
                }
                report => return report.map_err(|problem| problem.to_fault()),
            }
        }
        Err(Fault::new(Code::SessionEnded, format!("too many sessions `{name}` have ended")))
    }

    /// Runs a turn in a session that has no other.
    pub(super) async fn turn_alone(self: &Arc<Self>, request: TurnRequest) -> Result<TurnReport, Fault> {
        let session = request.session.clone();
        let report = self.turn(request).await?;
        if let Some(handle) = self.sessions.get(&session) {
            handle.close().await.map_err(|problem| problem.to_fault())?;
        }
        Ok(report)
    }

    async fn turn_in(self: &Arc<Self>, request: &TurnRequest) -> Result<TurnReport, Problem> {
        let TurnRequest { session, origin, text, attachments, message, .. } = request;
        let there = self.store.head(session)?.is_some() || self.sessions.get(session).is_some();
        if let (true, Some(EventMessage { id, repeat: true, .. })) = (there, message)
            && let Some(report) = self.earlier_turn(session, id).await?
        {
            return Ok(report);
        }
        let handle = if there {
            self.resume(session)?
        } else {
            self.open(self.new_session(request)?, None, request.depth)?
        };
        let id = message.as_ref().map(|message| message.id.clone());
        let output = message.as_ref().and_then(|message| message.output.clone());
        let said = (Content::text(text.clone()), attachments.clone());
        handle.say_message(&origin.channel, said, id, output).await
    }

    /// The turn that a message led to when it came before, waited for if it is still running; none if it led to nothing.
    async fn earlier_turn(
        self: &Arc<Self>,
        session: &StreamId,
        message: &str,
    ) -> Result<Option<TurnReport>, Problem> {
        self.store.flush()?;
        match self.turn_of(session, message)? {
            EarlierTurn::None => Ok(None),
            EarlierTurn::Ended(report) => Ok(Some(*report)),
            EarlierTurn::Running => match self.resume(session)?.running_turn().await {
                // It ended a moment ago.
                Err(problem) if problem.code == Code::TurnUnexpected => {
                    self.store.flush()?;
                    match self.turn_of(session, message)? {
                        EarlierTurn::Ended(report) => Ok(Some(*report)),
                        EarlierTurn::None | EarlierTurn::Running => Err(problem),
                    }
                }
                report => report.map(Some),
            },
        }
    }

    /// The turn of a message, as the log of its session has it.
    fn turn_of(&self, session: &StreamId, message: &str) -> Result<EarlierTurn, Problem> {
        let is_it = |body: &serde_json::Value| body["message_id"].as_str() == Some(message);
        let received = find_last_before(&self.store, session, Seq(u64::MAX), |frame| {
            frame.envelope.kind == FrameKind::InputReceived && frame.body.as_ref().is_some_and(is_it)
        })?;
        let Some(received) = received else { return Ok(EarlierTurn::None) };
        let mut ended = None;
        self.store.for_each_frame(session, received.envelope.seq, |frame| {
            Ok(if frame.envelope.kind == FrameKind::TurnEnded {
                ended = Some(frame);
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })?;
        Ok(match ended {
            Some(frame) => EarlierTurn::Ended(Box::new(self.report(session, &frame)?)),
            None => EarlierTurn::Running,
        })
    }

    /// The session under a name that goes on or would be opened, and the one that would follow it.
    pub(crate) fn latest_of(&self, name: &StreamId) -> Result<(StreamId, StreamId), Problem> {
        let named = |count: usize| match count {
            1 => name.clone(),
            count => format!("{name}.{count}").into(),
        };
        for count in 1..MAX_ENDED_SESSIONS {
            if !self.has_ended(&named(count))? {
                return Ok((named(count), named(count + 1)));
            }
        }
        Err(Problem::new(Code::SessionEnded, format!("too many sessions `{name}` have ended")))
    }

    fn has_ended(&self, session: &StreamId) -> Result<bool, Fault> {
        self.store.flush().map_err(|problem| problem.to_fault())?;
        let ended = self.store.last_of_kind(session, FrameKind::SessionEnded);
        Ok(ended.map_err(|problem| problem.to_fault())?.is_some())
    }

    /// A session as it is to be opened: the main agent's, or one of an agent that is registered.
    fn new_session(self: &Arc<Self>, request: &TurnRequest) -> Result<NewSession, Problem> {
        let TurnRequest { session: id, origin, agent, .. } = request;
        let opener = self.messaging.routes.opener.as_ref().ok_or_else(|| {
            Problem::new(
                Code::SessionUnmade,
                format!("the session `{id}` is needed, and this program does not create sessions"),
            )
        })?;
        let registry = self.registry.view();
        let registered = agent.as_ref().and_then(|agent| registry.agent(agent));
        let asked = agent.clone().filter(|_| registered.is_none());
        let opening = SessionRequest { id: id.clone(), origin: origin.clone(), agent: asked };
        let mut new = opener.create_session(&Runtime::of(self), opening)?;
        if let Some(agent) = registered {
            new.agent = agent.id.clone();
            new.instructions = agent.instructions.clone();
            new.settings.limits = agent.limits;
            new.settings.tools = agent.tools.clone();
            if !agent.models.is_empty() {
                new.settings.models = agent.models.clone();
            }
        }
        Ok(new)
    }

    /// The models of an agent that is called: its own, or else its caller's. A caller that is no model has none to give, and leaves it
    /// the one that new sessions use.
    pub(crate) fn models_of_child(
        self: &Arc<Self>,
        own: Vec<ModelName>,
        callers: Vec<ModelName>,
        act: &ChildAct,
    ) -> Result<Vec<ModelName>, Problem> {
        let direct = callers.iter().all(|name| name.as_str() == holdfast_model::direct::NAME);
        match (own.is_empty(), &self.messaging.routes.opener) {
            (false, _) => Ok(own),
            (true, Some(opener)) if direct => {
                let (id, origin) = (act.child.clone(), act.turn.origin.clone());
                Ok(opener
                    .create_session(&Runtime::of(self), SessionRequest { id, origin, agent: None })?
                    .settings
                    .models)
            }
            _ => Ok(callers),
        }
    }

    /// Has an extension's agent take an event, and tells the user what it says.
    pub(super) async fn invoke_for(
        self: &Arc<Self>,
        extension: &ExtensionId,
        delivery: &Delivery,
    ) -> Result<(), Fault> {
        let text = message_text(&delivery.event.payload);
        let registry = self.registry.view();
        let theirs = registry.tools.iter().filter_map(|entry| entry.stack.first());
        let mut theirs = theirs.filter(|active| active.extension.id == *extension);
        let (text, files) = match theirs.find_map(|active| active.agent.as_ref()?.agent().cloned()) {
            Some(agent) => {
                let (session, agent) = (session_for(delivery), Some(agent));
                let origin = Origin::extension(extension);
                let message = Some(delivery.into());
                let attachments = Vec::new();
                let request = TurnRequest { session, origin, agent, text, attachments, message, depth: 0 };
                let report = self.turn_alone(request).await?;
                (answer_of(&report), report.files)
            }
            None if !self.is_agent(extension) => return Ok(()),
            None => {
                let task = json!({ "task": text }).into();
                let said = self.call_role(extension, Role::Agent, "invoke", task).await?;
                (said.to_text(), Vec::new())
            }
        };
        self.notify(UserNotice::text(text), files, delivery).await
    }

    /// Whether an extension has an agent of its own. One that has none cannot take an event that its manifest gives to its agent: the event
    /// is skipped, and the first time `ext doctor` says so. One that is down may have one.
    fn is_agent(&self, id: &ExtensionId) -> bool {
        let Some(serving) = self.extensions.active(id) else { return true };
        let is_agent = self
            .extensions
            .instance(&serving)
            .map_or(true, |instance| instance.capabilities().roles.contains(Role::Agent));
        let told = || self.messaging.agentless.lock().insert((id.clone(), serving.generation));
        if !is_agent && told() {
            let message =
                "its manifest subscribes with `invoke_agent`, and it has no agent: the event was skipped";
            let (phase, fault) = ("event".to_owned(), Fault::new(Code::EventRefused, message));
            let (id, generation) = (id.clone(), serving.generation);
            self.system.tell(ExtensionFaulted { id, generation, phase, fault });
        }
        is_agent
    }

    /// Asks an agent for an extension, in a session of its own, and gives the answer.
    pub(crate) async fn invoke(
        self: &Arc<Self>,
        caller: &Caller,
        agent: Option<AgentId>,
        task: String,
    ) -> Result<Content, Fault> {
        let (parent, depth) = self.nested(caller)?;
        let inherited = caller.session.as_ref().map(|session| self.session_settings(session));
        let inherited = inherited.transpose().map_err(|problem| problem.to_fault())?;
        let count = self.messaging.opened.fetch_add(1, Ordering::Relaxed);
        let chance = self.entropy.draw_hex(4);
        let id = format!("agent.{}.{}-{count}-{chance}", caller.extension.id, self.clock.now().0);
        let origin = Origin::extension(&caller.extension.id);
        let session: StreamId = id.into();
        let (text, attachments, message) = (task, Vec::new(), None);
        let request =
            TurnRequest { session: session.clone(), origin, agent, text, attachments, message, depth };
        let mut under_way = WaitingSession { inner: self, session: Some(session) };
        let run = async {
            let mut new = self.new_session(&request)?;
            if let Some(inherited) = &inherited {
                new.settings.workspace = inherited.workspace.clone();
                new.settings.pinned_profile = inherited.pinned_profile;
            }
            if let Some(budget) = &caller.budget {
                new.settings.limits = budget.left_for(new.settings.limits);
            }
            let handle = self.open(new, parent, depth)?;
            let report = handle.say_pinned(&request.origin.channel, Content::text(request.text), None).await;
            handle.close().await?;
            report
        };
        let report = run.await.map_err(|problem| problem.to_fault());
        under_way.session = None;
        let report = report?;
        if let Some(budget) = &caller.budget {
            budget.charge(report.spent);
        }
        match report.outcome {
            TurnOutcome::Answered => Ok(report.answer.unwrap_or_default()),
            TurnOutcome::Failed(fault) => Err(fault),
            _ => Err(Fault::new(Code::ToolFailed, answer_of(&report))),
        }
    }

    /// What a session is under that an extension asks for, and how deep it is.
    pub(crate) fn nested(&self, caller: &Caller) -> Result<(Option<Parent>, u8), Fault> {
        let Some(stream) = caller.session.clone() else { return Ok((None, 0)) };
        let first = self.store.frames(&stream, Seq(0)..=Seq(0)).map_err(|problem| problem.to_fault())?;
        let started = match first.first().map(|frame| self.store.body(frame)) {
            Some(Ok(Body::SessionStarted(started))) => Some(started),
            _ => None,
        };
        let depth = started.as_ref().map_or(0, |started| started.depth);
        let cap = started.map_or(u8::MAX, |started| started.settings.depth_cap);
        if depth >= cap {
            let message = format!("an agent that `{}` asks would be {} deep", caller.extension.id, depth + 1);
            return Err(Fault::new(Code::ChildDepth, message));
        }
        let seq = caller.under.unwrap_or_default();
        Ok((Some(Parent { stream, seq }), depth + 1))
    }

    /// The user who wrote on a channel last. The log is searched once per channel; from then on every message is noted.
    pub(super) fn last_user(&self, channel: &ExtensionId) -> Result<Option<String>, Problem> {
        if let Some(user) = self.messaging.last_users().get(channel) {
            return Ok(Some(user.clone()));
        }
        let found = self.recorded_user(channel)?;
        if let Some(user) = &found {
            self.messaging.last_users().entry(channel.clone()).or_insert_with(|| user.clone());
        }
        Ok(found)
    }

    fn recorded_user(&self, channel: &ExtensionId) -> Result<Option<String>, Problem> {
        let expected = Origin::channel(channel, "").channel;
        let mut sessions = self.store.streams()?;
        sessions.retain(|info| info.id.is_session());
        sessions.sort_by_key(|info| std::cmp::Reverse(info.last_at));
        for info in sessions {
            let first = self.store.frames(&info.id, Seq(0)..=Seq(0))?;
            let Some(body) = first.first().and_then(|frame| frame.body.as_ref()) else { continue };
            let origin = &body["origin"];
            if let (true, Some(user)) =
                (origin["channel"].as_str() == Some(&*expected), origin["user"].as_str())
            {
                return Ok(Some(user.to_owned()));
            }
        }
        Ok(None)
    }
}
