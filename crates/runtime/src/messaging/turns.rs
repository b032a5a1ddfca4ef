//! Turns that no surface asked for: of a user on a channel, of a task, of an extension that asks the agent.
//!
//! A turn that an event leads to is run once, however often the event is handed over: the event's id stands in the session as the
//! message's, and a repeat resumes the turn that it finds there.

use std::ops::ControlFlow;
use std::sync::Arc;

use holdfast_bus::{Delivery, Subscription};
use holdfast_contract::agents::code_behind;
use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::effect::ChildAct;
use holdfast_contract::hook::Artifact;
use holdfast_contract::ids::{AgentId, ExtensionId, Millis, ModelName, Seq, StreamId};
use holdfast_contract::message::Origin;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::role::Role;
use holdfast_contract::session_frames::TurnOutcome;
use holdfast_contract::system_frames::ExtensionFaulted;
use holdfast_model::direct::NAME as DIRECT;

use super::OutputStream;
use super::places::ActivePlace;
use super::routes::SessionRequest;
use super::topics::{UserNotice, message_text};
use crate::history::find_last_before;
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

/// The event that caused a turn.
pub(super) struct EventMessage {
    id: String,
    repeat: bool,
    /// The channel on which it came, if it is a user's.
    channel: Option<ExtensionId>,
    /// Where its turn is shown while it runs.
    output: Option<Arc<OutputStream>>,
}

impl EventMessage {
    /// The same as a message on a channel, with a turn that is shown there.
    pub(super) fn shown(self, channel: &ExtensionId, output: Option<Arc<OutputStream>>) -> Self {
        Self { channel: Some(channel.clone()), output, ..self }
    }
}

impl From<&Delivery> for EventMessage {
    fn from(delivery: &Delivery) -> Self {
        Self { id: delivery.event.id.to_string(), repeat: delivery.repeat, channel: None, output: None }
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
        if let (true, Some(EventMessage { id, repeat: true, channel, .. })) = (there, message)
            && let Some(report) = self.earlier_turn(session, id).await?
        {
            if let Some(channel) = channel {
                self.report_lost_stream(session, channel, id, report.ended)?;
            }
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
        let TurnRequest { session, origin, agent, .. } = request;
        self.agent_session(session.clone(), origin.clone(), agent.as_ref())
    }

    /// A session of an agent that is registered, or of the main one.
    pub(super) fn agent_session(
        self: &Arc<Self>,
        id: StreamId,
        origin: Origin,
        agent: Option<&AgentId>,
    ) -> Result<NewSession, Problem> {
        let registry = self.registry.view();
        let registered = agent.and_then(|agent| registry.agent(agent));
        let mut new = self.main_session(id, origin, agent.cloned().filter(|_| registered.is_none()))?;
        if let Some(agent) = registered {
            new.agent = agent.id.clone();
            new.instructions = agent.instructions.clone();
            new.settings.limits = agent.limits;
            new.settings.tools = agent.tools.clone();
            let models = agent.answered_by();
            if !models.is_empty() {
                new.settings.models = models;
            }
            new.settings.authoritative_routing &= agent.code.is_none();
        }
        Ok(new)
    }

    /// A session of the main agent; a problem where another one is asked for.
    pub(crate) fn main_session(
        self: &Arc<Self>,
        id: StreamId,
        origin: Origin,
        agent: Option<AgentId>,
    ) -> Result<NewSession, Problem> {
        let opener = self.messaging.routes.opener.as_ref().ok_or_else(|| {
            Problem::new(
                Code::SessionUnmade,
                format!("the session `{id}` is needed, and this program does not create sessions"),
            )
        })?;
        opener.create_session(&Runtime::of(self), SessionRequest { id, origin, agent })
    }

    /// The models of an agent that is called: its own, or else its caller's. A caller that is not a model has none to give, and leaves it
    /// the one that new sessions use.
    pub(crate) fn models_of_child(
        self: &Arc<Self>,
        own: Vec<ModelName>,
        callers: Vec<ModelName>,
        act: &ChildAct,
    ) -> Result<Vec<ModelName>, Problem> {
        let is_model = |name: &ModelName| name.as_str() != DIRECT && code_behind(name).is_none();
        if !own.is_empty() {
            return Ok(own);
        }
        if callers.iter().any(is_model) || self.messaging.routes.opener.is_none() {
            return Ok(callers);
        }
        let (id, origin) = (act.child.clone(), act.turn.origin.clone());
        Ok(self.main_session(id, origin, None)?.settings.models)
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
        let agent = theirs.find_map(|active| active.agent.as_ref()?.agent().cloned());
        let Some(agent) = agent else {
            if !self.is_agent(extension) {
                return Ok(());
            }
            let missing = Fault::new(Code::ExtensionUnknown, format!("`{extension}` has no active agent"));
            return Err(self.postponed_if_down(extension, missing));
        };
        let (session, agent) = (session_for(delivery), Some(agent));
        let (origin, message) = (Origin::extension(extension), Some(delivery.into()));
        let attachments = Vec::new();
        let request = TurnRequest { session, origin, agent, text, attachments, message, depth: 0 };
        let report = self.turn_alone(request).await?;
        let (text, files) = (answer_of(&report), report.files);
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

    /// The user who wrote on a channel last. The log is searched once per channel; from then on every message is noted.
    pub(super) fn last_user(&self, channel: &ExtensionId) -> Result<Option<String>, Problem> {
        if let Some(user) = self.messaging.last_users().get(channel) {
            return Ok(Some(user.clone()));
        }
        let is_there =
            |place: &ActivePlace| matches!(place, ActivePlace::Channel { channel: at, .. } if at == channel);
        let found = match self.recorded_place(is_there)? {
            Some(ActivePlace::Channel { user, .. }) => Some(user),
            _ => None,
        };
        if let Some(user) = &found {
            self.messaging.last_users().entry(channel.clone()).or_insert_with(|| user.clone());
        }
        Ok(found)
    }
}
