//! The session machine: what a conversation remembers, and which facts it takes.
//!
//! A session has at most one turn in progress ([`ActiveTurn`]), and a turn has any number of tool calls in progress. A step of the turn
//! runs in a `TurnStep`, a step of one call in a `CallStep`, which cannot reach the other calls.

mod budget;
mod call;
mod call_pipeline;
mod children;
mod compaction;
mod handoff;
mod hooks;
mod models;
mod pipeline;
mod recovery;
mod turn;

use std::collections::BTreeMap;
use std::iter::once;
use std::sync::Arc;

use holdfast_contract::agents::ToolScope;
use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::effect::{Act, Effects, Input};
use holdfast_contract::hook::Artifact;
use holdfast_contract::host_call::HostCallKind;
use holdfast_contract::ids::{AgentId, ExtensionId, Seq, StreamId, ToolName};
use holdfast_contract::message::{Limits, Message, Origin, Spent, TurnContext};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{Implementation, RegistryPin};
use holdfast_contract::serde::{Deserialize, Serialize};
use holdfast_contract::session_frames::{HostCalled, SessionSettings, SessionStarted, StateWritten};

use self::budget::{charge, delegated};
use self::children::left_in_turn;
use self::turn::{ActiveTurn, Purpose, Turn, TurnStage, TurnStep};
use crate::BEHAVIOUR;
use crate::limits::left;
use crate::phase::{Accepted, Phase, unexpected};
use crate::registry::tool_scope::is_offered;
use crate::step_recorder::{StepRecorder, StreamClock};

/// One conversation. Its state follows from its frames; serialised, it is the session's snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub struct Session {
    clock: StreamClock,
    state: SessionState,
    active: Option<Box<ActiveTurn>>,
}

/// What outlives a turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
struct SessionState {
    id: StreamId,
    phase: Phase,
    start: SessionStarted,
    transcript: Arc<Vec<Message>>,
    values: BTreeMap<ExtensionId, BTreeMap<String, Content>>,
    /// The tools that a person has approved for the whole session, each with the content that it had.
    approved: BTreeMap<ToolName, Digest>,
    spent: Spent,
    turns: u32,
    /// The registry of the latest turn.
    registry: RegistryPin,
    /// The agent that the conversation was handed over to.
    speaker: Option<AgentId>,
}

impl Session {
    /// The version of the serialised state: the behaviour's, and the changes of its form since.
    pub const STATE_VERSION: u32 = BEHAVIOUR * 1_000;

    /// A machine for a stream that has no frames yet. Its first fact is `session.started`.
    pub fn new(id: StreamId) -> Self {
        Self {
            clock: StreamClock::default(),
            state: SessionState { id, ..SessionState::default() },
            active: None,
        }
    }

    /// The stream.
    pub fn id(&self) -> &StreamId {
        &self.state.id
    }

    /// The number that the next frame gets.
    pub fn next_seq(&self) -> Seq {
        self.clock.next
    }

    /// Whether a turn, a compaction or the session's end is in progress.
    pub fn is_busy(&self) -> bool {
        self.active.is_some()
    }

    /// The conversation so far.
    pub fn transcript(&self) -> &Arc<Vec<Message>> {
        &self.state.transcript
    }

    /// What the whole session has used.
    pub fn spent(&self) -> Spent {
        self.state.spent
    }

    /// The agent that answers.
    pub fn agent(&self) -> &AgentId {
        self.state.speaker.as_ref().unwrap_or(&self.state.start.agent)
    }

    /// The tools of the agent that answers.
    pub fn scope(&self) -> ToolScope {
        self.state.scope()
    }

    /// What the session began with, and the models that it uses now.
    pub fn beginning(&self) -> &SessionStarted {
        &self.state.start
    }

    /// Where the session comes from.
    pub fn origin(&self) -> &Origin {
        &self.state.start.origin
    }

    /// The session's settings.
    pub fn settings(&self) -> &SessionSettings {
        &self.state.start.settings
    }

    /// What is left of the limits for an agent that an extension invokes: of the turn that runs, or of the session between turns.
    pub fn left(&self) -> Limits {
        let limits = self.state.limits();
        match &self.active {
            Some(active) => Limits {
                // It ends with the call that invokes it, and the time of a turn that waits for a person does not pass.
                time_budget: limits.time_budget,
                ..left_in_turn(&self.state, &active.turn, self.clock.now)
            },
            None => left(&limits, &Spent::default(), &self.state.spent, limits.time_budget),
        }
    }

    /// How many model calls are left in the turn that runs, if this many of those that it made do not count.
    pub fn model_calls_left(&self, uncounted: u32) -> u32 {
        let made = self.active.as_ref().map_or(0, |active| active.turn.spent.turns);
        self.state.limits().max_turns.saturating_sub(made.saturating_sub(uncounted))
    }

    /// An extension's value in this session.
    pub fn state(&self, extension: &ExtensionId, key: &str) -> Option<&Content> {
        self.state.values.get(extension)?.get(key)
    }

    /// The registries that the state refers to, to be resolved after it was read back.
    pub fn pins(&mut self) -> impl Iterator<Item = &mut RegistryPin> {
        once(&mut self.state.registry)
    }

    /// Takes one fact and returns what it leads to. A fact that does not fit is refused: it changes nothing and is not recorded.
    pub fn step(&mut self, input: Input) -> Result<Effects, Fault> {
        let mut recorder = StepRecorder::open(self.clock, input.at);
        self.accept(&mut recorder, &input)?;
        self.clock = recorder.clock;
        let ended = self.active.take_if(|active| matches!(active.turn.stage, TurnStage::Ended));
        recorder.act(ended.and_then(|active| active.turn.timer).map(|begun_by| Act::Abort { begun_by }));
        Ok(recorder.close(input))
    }

    /// Applies a fact to what it belongs to. One that does not fit changes nothing.
    fn accept(&mut self, recorder: &mut StepRecorder, input: &Input) -> Accepted {
        match self.state.phase {
            Phase::New => return self.start(&input.body),
            Phase::Stopped => return Err(Fault::new(Code::SessionEnded, "the session has ended")),
            Phase::Running | Phase::Stopping => {}
        }
        match &input.body {
            Body::InputReceived(fact) => {
                let input = UserInput { text: fact.text.clone(), attachments: fact.attachments.clone() };
                return self.open(recorder, Purpose::Answer, &fact.registry, input);
            }
            Body::CompactionRequested(fact) => {
                return self.open(recorder, Purpose::Compact, &fact.registry, UserInput::default());
            }
            Body::SessionEnded(_) => {
                let registry = self.state.registry.clone();
                return self.open(recorder, Purpose::End, &registry, UserInput::default());
            }
            Body::MessageInjected(fact) => match &mut self.active {
                Some(active) => active.turn.notes.push(fact.text.clone()),
                None => self.state.append(Message::Note { text: fact.text.clone() }),
            },
            Body::SessionSet(fact) => {
                Arc::make_mut(&mut self.state.start.settings).models = fact.models.clone();
            }
            Body::StateWritten(fact) => self.state.write(fact),
            Body::HostCalled(fact) => self.charge_host_call(fact),
            Body::UiRequested(fact) => recorder.act(Act::AskUi {
                decided_by: recorder.cause,
                extension: fact.extension.clone(),
                question: fact.question.clone(),
            }),
            Body::UiAnswered(_)
            | Body::ClockRead(_)
            | Body::RandomDrawn(_)
            | Body::SecretUsed(_)
            | Body::DeliveryReported(_)
            | Body::StreamShown(_)
            | Body::StreamLost(_)
            | Body::PreviewAsked(_)
            | Body::CommandRun(_) => {}
            Body::SessionResumed(_) if self.active.is_none() => {}
            body => {
                let step =
                    self.active.as_mut().map(|active| TurnStep::new(recorder, &mut self.state, active));
                if !step.is_some_and(|mut step| step.accept(body, input.cause)) {
                    return unexpected("nothing in this session waits for this fact");
                }
            }
        }
        Ok(())
    }

    /// Charges what an agent, a tool or a model used that an extension invoked, to the turn that runs and to the session. A model that
    /// it asks is a model call of the turn; the model calls of an agent are the agent's own.
    fn charge_host_call(&mut self, fact: &HostCalled) {
        let Some(used) = fact.spent else { return };
        let turns = if fact.ask == HostCallKind::ModelInvoke.name() { used.turns } else { 0 };
        let spent = Spent { turns, ..delegated(used) };
        match &mut self.active {
            Some(active) => charge(&mut self.state, &mut active.turn, spent),
            None => self.state.spent = self.state.spent.plus(spent),
        }
    }

    fn start(&mut self, body: &Body) -> Accepted {
        let Body::SessionStarted(fact) = body else { return unexpected("the session has not started") };
        self.state.phase = Phase::Running;
        self.state.start = fact.clone();
        Ok(())
    }

    /// Begins a turn on this registry.
    fn open(
        &mut self,
        recorder: &mut StepRecorder,
        purpose: Purpose,
        registry: &RegistryPin,
        input: UserInput,
    ) -> Accepted {
        if self.active.is_some() {
            return Err(Fault::new(Code::TurnBusy, "a turn is running"));
        }
        // A session that never had a turn has no registry, and ends without one.
        if registry.view.is_none() && purpose != Purpose::End {
            return Err(Fault::new(Code::ReplayMissing, "the registry of the turn is not loaded"));
        }
        let state = &mut self.state;
        state.registry = registry.clone();
        state.turns = state.turns.saturating_add(u32::from(purpose == Purpose::Answer));
        let context = TurnContext {
            session: state.id.clone(),
            turn: state.turns,
            origin: state.start.origin.clone(),
            workspace: state.start.settings.workspace.clone(),
            profile: state.start.settings.pinned_profile,
            ..TurnContext::default()
        };
        let turn = Turn::new(purpose, context, input);
        let active = self.active.insert(Box::new(ActiveTurn { turn, calls: Vec::new() }));
        TurnStep::new(recorder, state, active).begin();
        Ok(())
    }
}

/// What a user wrote, and the files that came with it.
#[derive(Default)]
struct UserInput {
    text: Content,
    attachments: Vec<Artifact>,
}

impl SessionState {
    /// Appends a message to the conversation.
    fn append(&mut self, message: Message) {
        Arc::make_mut(&mut self.transcript).push(message);
    }

    /// Writes or removes an extension's value.
    fn write(&mut self, fact: &StateWritten) {
        let values = self.values.entry(fact.extension.clone()).or_default();
        match &fact.value {
            Some(value) => values.insert(fact.key.clone(), value.clone()),
            None => values.remove(&fact.key),
        };
    }

    /// The implementations of a tool, the active one first; none if the agent that answers does not have the tool.
    fn implementations(&self, tool: &ToolName) -> &[Implementation] {
        let Some(entry) = self.registry.view.as_ref().and_then(|registry| registry.tool(tool)) else {
            return &[];
        };
        if is_offered(entry, self.tool_extensions(), self.speaker.as_ref()) { &entry.stack } else { &[] }
    }
}
