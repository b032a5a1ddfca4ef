//! The session machine: what a conversation remembers, and which facts it takes.

mod call;
mod compaction;
mod handoff;
mod limits;
mod models;
mod recovery;
mod round;
mod turn;
mod walk;

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::Arc;

use holdfast_contract::agents::{AgentSpec, AgentUse, ToolScope};
use holdfast_contract::body::Body;
use holdfast_contract::content::{Content, DigestOf};
use holdfast_contract::digest::Digest;
use holdfast_contract::effect::*;
use holdfast_contract::hook::{Artifact, Decision, HookInput, HookPoint, HookPoint as P, OnFault, Order};
use holdfast_contract::ids::*;
use holdfast_contract::matcher::MatchedCall;
use holdfast_contract::message::*;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::*;
use holdfast_contract::serde::{Deserialize, Serialize};
use holdfast_contract::session_frames::*;
use holdfast_contract::tool::{CallStatus, ToolOutcome};

use self::call::Call;
use self::turn::{Purpose, Stage, StepContext, Turn, Wait};
use crate::BEHAVIOUR;
use crate::hook_round::{HookAnswers, HookRound};
use crate::limits::{self as limit_rules, TimeLimit};
use crate::phase::{Phase, Taken, unexpected};
use crate::registry::hook_index::{matching_hooks, open_hooks};
use crate::registry::tool_scope::is_offered;
use crate::step_recorder::{StepRecorder, StreamClock};

/// How many messages compaction keeps whole if nobody says otherwise.
const DEFAULT_KEEP: u32 = 6;

/// One conversation. Its state is exactly what its frames so far have made it; serialised, it is the session's snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub struct Session {
    clock: StreamClock,
    base: Base,
    turn: Option<Box<Turn>>,
}

/// What outlives a turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
struct Base {
    id: StreamId,
    phase: Phase,
    start: SessionStarted,
    transcript: Arc<Vec<Message>>,
    state: BTreeMap<ExtensionId, BTreeMap<String, Content>>,
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
    pub const STATE_VERSION: u32 = BEHAVIOUR * 1_000 + 1;

    /// A machine for a stream that has no frames yet. Its first fact is `session.started`.
    pub fn new(id: StreamId) -> Self {
        Self { clock: StreamClock::default(), base: Base { id, ..Base::default() }, turn: None }
    }

    /// The stream.
    pub fn id(&self) -> &StreamId {
        &self.base.id
    }

    /// The number that the next frame gets.
    pub fn next_seq(&self) -> Seq {
        self.clock.next
    }

    /// Whether a turn, a compaction or the session's end is under way.
    pub fn is_busy(&self) -> bool {
        self.turn.is_some()
    }

    /// The conversation so far.
    pub fn transcript(&self) -> &Arc<Vec<Message>> {
        &self.base.transcript
    }

    /// What the whole session has used.
    pub fn spent(&self) -> Spent {
        self.base.spent
    }

    /// Who answers in it.
    pub fn agent(&self) -> &AgentId {
        self.base.speaker.as_ref().unwrap_or(&self.base.start.agent)
    }

    /// The tools that whoever answers in it has.
    pub fn scope(&self) -> ToolScope {
        self.base.scope()
    }

    /// What the session is set to.
    pub fn settings(&self) -> &SessionSettings {
        &self.base.start.settings
    }

    /// An extension's value in this session.
    pub fn state(&self, extension: &ExtensionId, key: &str) -> Option<&Content> {
        self.base.state.get(extension)?.get(key)
    }

    /// The registries that the state refers to, to be resolved after it was read back.
    pub fn pins(&mut self) -> impl Iterator<Item = &mut RegistryPin> {
        std::iter::once(&mut self.base.registry)
    }

    /// Takes one fact and says what it leads to. One that does not fit is refused: it has changed nothing and is not recorded.
    pub fn step(&mut self, input: Input) -> Result<Effects, Fault> {
        let mut desk = StepRecorder::open(self.clock, input.at);
        self.take(&mut desk, &input)?;
        self.clock = desk.clock;
        let over = self.turn.take_if(|turn| matches!(turn.wait.stage, Stage::Over));
        desk.act(over.and_then(|turn| turn.timer).map(|begun_by| Act::Abort { begun_by }));
        Ok(desk.close(input))
    }

    /// Hands a fact to what it belongs to. One that does not fit changes nothing.
    fn take(&mut self, desk: &mut StepRecorder, input: &Input) -> Taken {
        use Body::*;
        use Purpose::*;
        let Self { base, turn, .. } = self;
        match (base.phase, &input.body) {
            (Phase::New, SessionStarted(fact)) => {
                base.phase = Phase::Running;
                base.start = fact.clone();
                return Ok(());
            }
            (Phase::New, _) => return unexpected("the session has not started"),
            (Phase::Stopped, _) => return Err(Fault::new(Code::SessionEnded, "the session has ended")),
            _ => {}
        }
        match &input.body {
            InputReceived(fact) => {
                return self.open(
                    desk,
                    Answer,
                    &fact.registry,
                    (fact.text.clone(), fact.attachments.clone()),
                );
            }
            CompactionRequested(fact) => return self.open(desk, Compact, &fact.registry, Default::default()),
            SessionEnded(_) => return self.open(desk, End, &self.base.registry.clone(), Default::default()),
            MessageInjected(fact) => match turn {
                Some(turn) => turn.notes.push(fact.text.clone()),
                None => base.say(Message::Note { text: fact.text.clone() }),
            },
            SessionSet(fact) => Arc::make_mut(&mut base.start.settings).models = fact.models.clone(),
            StateWritten(fact) => base.write(fact),
            UiRequested(fact) => {
                let (extension, question) = (fact.extension.clone(), fact.question.clone());
                desk.act(Act::AskUi { decided_by: desk.cause, extension, question });
            }
            UiAnswered(_) | ClockRead(_) | RandomDrawn(_) | SecretUsed(_) | HostCalled(_)
            | RpcRequested(_) | RpcReturned(_) | ConnectionJudged(_) | DeliveryReported(_)
            | CommandRun(_) => {}
            SessionResumed(_) if turn.is_none() => {}
            body => {
                let taken =
                    turn.as_mut().and_then(|turn| StepContext { desk, base, turn }.take(body, input.cause));
                return taken.map_or_else(|| unexpected("nothing in this session waits for this fact"), Ok);
            }
        }
        Ok(())
    }

    /// Begins a turn on this registry.
    fn open(
        &mut self,
        desk: &mut StepRecorder,
        purpose: Purpose,
        registry: &RegistryPin,
        said: UserText,
    ) -> Taken {
        if self.turn.is_some() {
            return Err(Fault::new(Code::TurnBusy, "a turn is running"));
        }
        // A session that never had a turn has no registry, and ends without one.
        if registry.view.is_none() && purpose != Purpose::End {
            return Err(Fault::new(Code::ReplayMissing, "the registry of the turn is not at hand"));
        }
        let base = &mut self.base;
        base.registry = registry.clone();
        base.turns = base.turns.saturating_add(u32::from(purpose == Purpose::Answer));
        let origin = base.start.origin.clone();
        let context =
            TurnContext { session: base.id.clone(), turn: base.turns, origin, ..TurnContext::default() };
        let ((text, attachments), context, keep) = (said, Arc::new(context), DEFAULT_KEEP);
        let turn = Turn { purpose, context, text, attachments, keep, ..Turn::default() };
        StepContext { desk, base, turn: self.turn.insert(Box::new(turn)) }.begin();
        Ok(())
    }
}

impl Base {
    /// An extension's values after this.
    fn write(&mut self, fact: &StateWritten) {
        let values = self.state.entry(fact.extension.clone()).or_default();
        match &fact.value {
            Some(value) => values.insert(fact.key.clone(), value.clone()),
            None => values.remove(&fact.key),
        };
    }

    fn say(&mut self, message: Message) {
        Arc::make_mut(&mut self.transcript).push(message);
    }

    /// The implementations of a tool that whoever speaks has, the active one first.
    fn implementations(&self, tool: &ToolName) -> &[Implementation] {
        let entry = self.registry.view.as_ref().and_then(|registry| registry.tool(tool));
        let offered =
            |entry: &&ToolEntry| is_offered(entry, self.offered().as_deref(), self.speaker.as_ref());
        entry.filter(offered).map_or(&[], |entry| &entry.stack)
    }
}
