//! The session machine: admits facts, finds what they belong to, and hands them on.

mod call;
mod limits;
mod recovery;
mod round;
mod turn;

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::effect::{Act, Effect, Input};
use holdfast_contract::ids::{AgentId, ExtensionId, Seq, StreamId, ToolName};
use holdfast_contract::message::{CallView, Message, Origin, Spent};
use holdfast_contract::problem::Code;
use holdfast_contract::registry::RegistryPin;
use holdfast_contract::serde::{Deserialize, Serialize};
use holdfast_contract::session_frames::{
    GateReason, Parent, SessionSettings, SessionStarted, StateWritten, TurnOutcome, UiRequested,
};

use crate::desk::{Clerk, Desk, refuse};
use call::CallStage;
use turn::{Purpose, Stage, Turn};

/// One conversation. Its state is exactly what its frames so far have made it; serialised, it is the session's snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub struct Session {
    clerk: Clerk,
    base: Base,
    turn: Option<Box<Turn>>,
}

/// What outlives a turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
struct Base {
    id: StreamId,
    status: Status,
    agent: AgentId,
    instructions: Content,
    origin: Origin,
    parent: Option<Parent>,
    depth: u8,
    settings: SessionSettings,
    transcript: Arc<Vec<Message>>,
    state: Vec<StateEntry>,
    approved: BTreeSet<ToolName>,
    spent: Spent,
    turns: u32,
    registry: Option<RegistryPin>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
enum Status {
    New,
    Open,
    Ended,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
struct StateEntry {
    extension: ExtensionId,
    key: String,
    value: Content,
}

/// A question that waits for a person.
#[derive(Clone, Debug)]
pub struct Pending {
    /// The `approval.requested` frame.
    pub approval: Seq,
    /// The call.
    pub call: CallView,
    /// Who asks, and why.
    pub reasons: Vec<GateReason>,
}

/// What a fact belongs to.
#[derive(Clone, Copy)]
enum Place {
    Session,
    Turn,
    Call(usize),
}

/// A step on its way: the desk, and what outlives the turn.
struct Way<'a> {
    desk: Desk<'a>,
    base: &'a mut Base,
}

impl Session {
    /// A machine for a stream that has no frames yet. Its first fact is `session.started`.
    pub fn new(id: StreamId) -> Self {
        let base = Base {
            id,
            status: Status::New,
            agent: "".into(),
            instructions: Content::text(""),
            origin: Origin { channel: String::new(), user: None },
            parent: None,
            depth: 0,
            settings: SessionSettings::default(),
            transcript: Arc::default(),
            state: Vec::new(),
            approved: BTreeSet::new(),
            spent: Spent::default(),
            turns: 0,
            registry: None,
        };
        Self { clerk: Clerk::default(), base, turn: None }
    }

    /// The stream.
    pub fn id(&self) -> &StreamId {
        &self.base.id
    }

    /// The number that the next frame gets.
    pub fn next_seq(&self) -> Seq {
        self.clerk.next
    }

    /// Whether a turn, a compaction or the session's end is under way.
    pub fn is_busy(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether the session takes input.
    pub fn is_open(&self) -> bool {
        self.base.status == Status::Open
    }

    /// The conversation so far.
    pub fn transcript(&self) -> &Arc<Vec<Message>> {
        &self.base.transcript
    }

    /// What the whole session has used.
    pub fn spent(&self) -> Spent {
        self.base.spent
    }

    /// What the session is set to.
    pub fn settings(&self) -> &SessionSettings {
        &self.base.settings
    }

    /// The frame the session was opened from, if it is a child.
    pub fn parent(&self) -> Option<&Parent> {
        self.base.parent.as_ref()
    }

    /// An extension's value in this session.
    pub fn state(&self, extension: &ExtensionId, key: &str) -> Option<&Content> {
        let entry = self.base.state.iter().find(|entry| entry.extension == *extension && entry.key == key);
        entry.map(|entry| &entry.value)
    }

    /// The questions that wait for a person.
    pub fn pending(&self) -> Vec<Pending> {
        let calls = self.turn.iter().flat_map(|turn| &turn.calls);
        calls
            .filter_map(|call| match &call.stage {
                CallStage::Approving { asked, reasons, .. } => {
                    Some(Pending { approval: *asked, call: call.view(), reasons: reasons.clone() })
                }
                _ => None,
            })
            .collect()
    }

    /// The registries that the state refers to, to be resolved after it was read back.
    pub fn pins(&mut self) -> impl Iterator<Item = &mut RegistryPin> {
        self.base.registry.iter_mut().chain(self.turn.iter_mut().map(|turn| &mut turn.registry))
    }

    /// Takes one fact and says what it leads to.
    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        let place = match self.place(&input) {
            Ok(place) => place,
            Err((code, message)) => return refuse(code, message),
        };
        let body = input.body.clone();
        let mut way = Way { desk: Desk::open(&mut self.clerk, input), base: &mut self.base };
        match (place, &mut self.turn) {
            (Place::Session, turn) => {
                let opened = way.session_fact(body, turn.as_deref_mut());
                if let Some(mut opened) = opened {
                    way.begin(&mut opened);
                    *turn = Some(opened);
                }
            }
            (Place::Turn, Some(turn)) => way.turn_fact(turn, body),
            (Place::Call(index), Some(turn)) => way.call_fact(turn, index, body),
            (Place::Turn | Place::Call(_), None) => {}
        }
        let effects = way.desk.close();
        if self.turn.as_ref().is_some_and(|turn| turn.over) {
            self.turn = None;
        }
        effects
    }

    /// What a fact belongs to, or why it does not fit.
    fn place(&self, input: &Input) -> Result<Place, (Code, &'static str)> {
        let unexpected = (Code::TurnUnexpected, "nothing in this session waits for this fact");
        let status = match (&input.body, self.base.status) {
            (Body::SessionStarted(_), Status::New) => return Ok(Place::Session),
            (Body::SessionStarted(_), _) => {
                return Err((Code::TurnUnexpected, "the session has started already"));
            }
            (_, status) => status,
        };
        match status {
            Status::New => return Err((Code::TurnUnexpected, "the session has not started")),
            Status::Ended => return Err((Code::SessionEnded, "the session has ended")),
            Status::Open => {}
        }
        let turn = self.turn.as_deref();
        match &input.body {
            Body::InputReceived(fact) => self.admit_opening(&fact.registry),
            Body::CompactionRequested(fact) => self.admit_opening(&fact.registry),
            Body::SessionEnded(_) if turn.is_some() => Err((Code::TurnBusy, "a turn is running")),
            Body::SessionEnded(_)
            | Body::SessionResumed(_)
            | Body::MessageInjected(_)
            | Body::StateWritten(_)
            | Body::UiRequested(_)
            | Body::UiAnswered(_)
            | Body::ClockRead(_)
            | Body::RandomDrawn(_)
            | Body::SecretUsed(_)
            | Body::HostCalled(_)
            | Body::RpcRequested(_)
            | Body::RpcReturned(_)
            | Body::ConnectionJudged(_)
            | Body::DeliveryReported(_)
            | Body::CommandRun(_) => Ok(Place::Session),
            body => turn.and_then(|turn| turn.place(body, input.cause)).ok_or(unexpected),
        }
    }

    fn admit_opening(&self, registry: &RegistryPin) -> Result<Place, (Code, &'static str)> {
        if self.turn.is_some() {
            return Err((Code::TurnBusy, "a turn is running"));
        }
        match registry.view {
            Some(_) => Ok(Place::Session),
            None => Err((Code::ReplayMissing, "the registry that the turn is pinned to is not at hand")),
        }
    }
}

impl Way<'_> {
    /// A fact of the session itself. Gives the turn that it opens.
    fn session_fact(&mut self, body: Body, turn: Option<&mut Turn>) -> Option<Box<Turn>> {
        match body {
            Body::SessionStarted(fact) => self.start(fact),
            Body::InputReceived(fact) => {
                self.base.registry = Some(fact.registry.clone());
                return Some(Box::new(Turn::new(self.base, fact.registry, fact.text, Purpose::Answer)));
            }
            Body::CompactionRequested(fact) => {
                self.base.registry = Some(fact.registry.clone());
                let reason = Content::text(fact.reason);
                return Some(Box::new(Turn::new(self.base, fact.registry, reason, Purpose::Compact)));
            }
            Body::SessionEnded(fact) => match self.base.registry.clone() {
                Some(pin) => {
                    return Some(Box::new(Turn::new(
                        self.base,
                        pin,
                        Content::text(fact.reason),
                        Purpose::End,
                    )));
                }
                None => self.base.status = Status::Ended,
            },
            Body::SessionResumed(_) => {
                if let Some(turn) = turn {
                    self.recover(turn);
                }
            }
            Body::MessageInjected(fact) => match turn {
                Some(turn) => turn.notes.push(fact.text),
                None => self.say(Message::Note { text: fact.text }),
            },
            Body::StateWritten(fact) => self.write_state(fact),
            Body::UiRequested(UiRequested { question, .. }) => {
                let decided_by = self.desk.cause();
                self.desk.act(Act::AskUi { decided_by, question });
            }
            _ => {}
        }
        None
    }

    fn start(&mut self, fact: SessionStarted) {
        self.base.status = Status::Open;
        self.base.origin = fact.origin;
        self.base.agent = fact.agent;
        self.base.instructions = fact.instructions;
        self.base.parent = fact.parent;
        self.base.depth = fact.depth;
        self.base.settings = fact.settings;
    }

    fn write_state(&mut self, StateWritten { extension, key, value }: StateWritten) {
        let state = &mut self.base.state;
        let place = state.binary_search_by(|entry| (&entry.extension, &entry.key).cmp(&(&extension, &key)));
        match (place, value) {
            (Ok(place), Some(value)) => state[place].value = value,
            (Ok(place), None) => drop(state.remove(place)),
            (Err(place), Some(value)) => state.insert(place, StateEntry { extension, key, value }),
            (Err(_), None) => {}
        }
    }

    fn say(&mut self, message: Message) {
        Arc::make_mut(&mut self.base.transcript).push(message);
    }

    /// A fact of the running turn.
    fn turn_fact(&mut self, turn: &mut Turn, body: Body) {
        match body {
            Body::HookDecided(fact) => self.heard_turn(turn, &fact.hook, Ok(fact.decision)),
            Body::HookFaulted(fact) => self.heard_turn(turn, &fact.hook, Err(fact.fault)),
            Body::ModelReturned(fact) => self.model_returned(turn, fact),
            Body::ModelFailed(fact) => self.model_failed(turn, fact),
            Body::CompactionProvided(fact) => self.summarised(turn, fact),
            Body::TimerFired(_) => self.time_is_up(turn),
            Body::SessionCancelled(fact) => {
                self.end_early(turn, TurnOutcome::Cancelled { reason: fact.reason })
            }
            _ => {}
        }
    }

    /// A fact of one of the turn's calls.
    fn call_fact(&mut self, turn: &mut Turn, index: usize, body: Body) {
        match body {
            Body::HookDecided(fact) => self.heard_call(turn, index, &fact.hook, Ok(fact.decision)),
            Body::HookFaulted(fact) => self.heard_call(turn, index, &fact.hook, Err(fact.fault)),
            Body::ToolChecked(fact) => self.checked(turn, index, fact.outcome),
            Body::ToolReturned(fact) => self.returned(turn, index, fact.outcome),
            Body::ChildEnded(fact) => self.child_ended(turn, index, fact),
            Body::ApprovalAnswered(fact) => self.answered(turn, index, fact.answer),
            _ => {}
        }
    }
}

impl Turn {
    /// Which part of the turn waits for this fact.
    fn place(&self, body: &Body, cause: Option<Seq>) -> Option<Place> {
        let at_turn = |fits: bool| fits.then_some(Place::Turn);
        match (body, &self.stage) {
            (Body::HookDecided(fact), _) => self.round_place(cause?, &fact.hook),
            (Body::HookFaulted(fact), _) => self.round_place(cause?, &fact.hook),
            (Body::ModelReturned(_) | Body::ModelFailed(_), Stage::Model { requested, .. }) => {
                at_turn(cause == Some(*requested))
            }
            (Body::CompactionProvided(_), Stage::Summarising { started }) => at_turn(cause == Some(*started)),
            (Body::TimerFired(fact), _) => at_turn(self.timer == Some(fact.timer)),
            (Body::SessionCancelled(_), _) => at_turn(self.purpose != Purpose::End),
            (body, Stage::Tools) => {
                self.calls.iter().position(|call| call.waits_for(body, cause)).map(Place::Call)
            }
            _ => None,
        }
    }
}
