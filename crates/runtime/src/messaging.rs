//! Messages outside sessions: the bus, its subscribers, and the way of messages between users, agents and channels.
//!
//! | file | contents |
//! |---|---|
//! | `subscriptions.rs` | the bus's subscribers: what installed extensions subscribe to |
//! | `router.rs`, `routes.rs` | a user's message to its session, an answer to its channel |
//! | `places.rs` | where the user is reached, and turns that are typed on a surface |
//! | `questions.rs` | approvals and questions that wait for the owner of the home |
//! | `channels.rs` | the active channels as a user sees them |
//! | `streams.rs`, `channel_stream.rs` | answers on a channel while they are written |
//! | `turns.rs` | turns that no surface started |
//! | `turn_events.rs` | events about turns that are kept in memory only |
//! | `invocations.rs` | agents, tools and models that extensions ask for an answer |
//! | `topics.rs` | the payloads of the program's own topics |
//!
//! What extensions may call of all this is in `host/events.rs` and `host/agents.rs`.

mod channel_stream;
mod channels;
mod invocations;
mod places;
mod questions;
mod router;
mod routes;
mod streams;
mod subscriptions;
mod topics;
mod turn_events;
mod turns;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use holdfast_bus::topics::{AGENT_BACKGROUND, AGENT_TASK, EXTENSION_ERROR};
use holdfast_bus::{Bus, BusSettings, NewEvent, Published};
use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::ids::{ExtensionId, Generation, Millis};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::system_frames::{
    ExtensionFaulted, ExtensionRejected, ExtensionReported, HeadAnchored, LifecycleOutcome,
};
use holdfast_store::Store;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, watch};

use crate::clock::Clock;
use crate::parts::Entropy;
use crate::runtime::{Inner, Runtime};
use places::ActivePlace;
use questions::Questions;
use streams::Streams;
use subscriptions::Subscriptions;
use turn_events::TurnEvents;

pub(crate) use channel_stream::{OutputStream, StreamChunk};
pub use channels::ChannelView;
pub(crate) use invocations::{Invocation, RecordedUpdates, unwanted};
pub use questions::{ExpectedAnswer, QuestionSubject, WaitingQuestion};
pub(crate) use questions::{QuestionEnd, told_answer};
pub use routes::{Routes, SessionFactory, SessionRequest};
pub use topics::{
    AgentTask, ExtensionError, ExtensionStateEvent, OutgoingMessage, QuestionRef, UserMessage, UserNotice,
};

/// How long handlers may go on when the system stops. What is not finished then is for the next start.
const CLOSE_TIMEOUT: Millis = Millis(5_000);

/// The bus and who is on it.
pub(crate) struct Messaging {
    bus: Bus,
    routes: Routes,
    subscriptions: Mutex<Subscriptions>,
    /// Whether events of an extension's subscriptions wait because it is not active.
    paused: Mutex<HashMap<ExtensionId, Arc<AtomicBool>>>,
    /// Whether events of the router's own subscriptions wait, because it has not started: an attempt would fail, and count.
    router_paused: Arc<AtomicBool>,
    /// The same for those that lead to turns, which wait for the extensions that are starting.
    turns_paused: Arc<AtomicBool>,
    /// Whether the start of the router is over, so that nothing waits for extensions any more.
    router_started: watch::Sender<bool>,
    /// Whether the bus's subscribers may differ from what is wanted.
    stale: AtomicBool,
    /// Held while they are set.
    syncing: tokio::sync::Mutex<()>,
    /// Counts changes of the active generations.
    changes: watch::Sender<u64>,
    /// What the program itself has to say, in order.
    announcements: mpsc::UnboundedSender<NewEvent>,
    /// Counts the sessions that were opened for extensions.
    opened: AtomicU64,
    /// The user who wrote last, by channel.
    last_users: Mutex<HashMap<ExtensionId, String>>,
    /// Where the user was last active.
    last_place: Mutex<Option<ActivePlace>>,
    /// Whether a chat of the terminal was ever opened, once the log was searched or one was.
    knows_chats: Mutex<Option<bool>>,
    /// The questions that wait for a person.
    pub(crate) questions: Questions,
    /// Generations without an agent whose manifest gives events to one, which was reported.
    agentless: Mutex<HashSet<(ExtensionId, Generation)>>,
    /// The answers that are shown on channels while they are written.
    streams: Streams,
    /// The events about turns that subscribers have not been handed yet.
    turn_events: TurnEvents,
}

impl Runtime {
    /// A chat was opened: what waits for one can be shown.
    pub fn chat_opened(&self) {
        self.inner().messaging.notify_changed();
    }
}

impl Messaging {
    /// Opens the bus of this log, without subscribers.
    pub(crate) async fn open(
        store: Store,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        routes: Routes,
    ) -> Result<Self, Problem> {
        let bus = Bus::open(store, clock, entropy, BusSettings::default(), Vec::new()).await?;
        let (announcements, told) = mpsc::unbounded_channel();
        tokio::spawn(announce(bus.clone(), told));
        Ok(Self {
            bus,
            routes,
            subscriptions: Mutex::default(),
            paused: Mutex::default(),
            router_paused: Arc::new(AtomicBool::new(true)),
            turns_paused: Arc::new(AtomicBool::new(true)),
            router_started: watch::Sender::new(false),
            stale: AtomicBool::new(true),
            syncing: tokio::sync::Mutex::default(),
            changes: watch::Sender::new(0),
            announcements,
            opened: AtomicU64::default(),
            last_users: Mutex::default(),
            last_place: Mutex::default(),
            knows_chats: Mutex::default(),
            questions: Questions::default(),
            agentless: Mutex::default(),
            streams: Streams::default(),
            turn_events: TurnEvents::default(),
        })
    }

    /// The bus.
    pub(crate) fn bus(&self) -> &Bus {
        &self.bus
    }

    fn last_users(&self) -> MutexGuard<'_, HashMap<ExtensionId, String>> {
        self.last_users.lock()
    }

    /// How users, agents and channels are connected.
    pub(crate) fn routes(&self) -> &Routes {
        &self.routes
    }

    fn subscriptions(&self) -> MutexGuard<'_, Subscriptions> {
        self.subscriptions.lock()
    }

    /// The active generations, or the registry, have changed.
    pub(crate) fn notify_changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }
}

/// Publishes what the program has to say. What cannot be published is in the system stream all the same.
async fn announce(bus: Bus, mut told: mpsc::UnboundedReceiver<NewEvent>) {
    while let Some(first) = told.recv().await {
        let mut events = vec![first];
        while let Ok(event) = told.try_recv() {
            events.push(event);
        }
        drop(bus.publish_many(events).await);
    }
}

impl Runtime {
    /// The bus.
    pub fn bus(&self) -> &Bus {
        self.inner().messaging.bus()
    }

    /// Publishes an event. The payload of an event on one of the program's own topics is checked.
    pub async fn publish(&self, event: NewEvent) -> Result<Published, Problem> {
        self.inner().publish(event).await
    }
}

impl Inner {
    /// Publishes an event. A user's message gets its place in its session's order, and its message's id against doubles; a task that
    /// has no key gets one of its own.
    pub(crate) async fn publish(&self, event: NewEvent) -> Result<Published, Problem> {
        let mut event = topics::prepared(event, &self.messaging.routes)?;
        if matches!(event.topic.as_str(), AGENT_TASK | AGENT_BACKGROUND) && event.key.is_none() {
            // Tasks do not wait for each other: each has an order of its own, under a name that no other has.
            event.key = Some(self.entropy.draw_hex(8));
        }
        self.put(event).await
    }

    /// Puts an event on the bus, without what is secret: it is a frame, and many may read it.
    async fn put(&self, event: NewEvent) -> Result<Published, Problem> {
        self.messaging.bus.publish(self.without_secrets(event)).await
    }

    fn without_secrets(&self, mut event: NewEvent) -> NewEvent {
        self.home.redact_content(&mut event.payload);
        event
    }

    /// What a subscriber's failure says, without what is secret.
    fn told_of(&self, mut fault: Fault) -> Fault {
        fault.message = self.home.redact_text(fault.message);
        fault
    }

    /// Has something of the program's own published, if anybody wants to know. The system stream has it in any case.
    pub(crate) fn announce(&self, topic: &str, payload: &impl serde::Serialize) {
        if self.messaging.subscriptions().is_wanted(&topic.into()) {
            // When the last publisher is gone the process is shutting down.
            let event = self.without_secrets(NewEvent::new(topic, Content::of(payload)));
            drop(self.messaging.announcements.send(event));
        }
    }

    /// An extension is unhealthy by its own account.
    pub(crate) fn announce_unhealthy(&self, extension: &ExtensionRef) {
        let ExtensionRef { id: extension, generation, .. } = extension.clone();
        let fault =
            Fault::new(Code::ExtensionUnhealthy, format!("`{extension}` reported that it is unhealthy"));
        let (generation, phase) = (Some(generation), "health check".to_owned());
        self.announce(EXTENSION_ERROR, &ExtensionError { extension, generation, phase, fault });
    }

    /// An extension makes too many host calls.
    pub(crate) fn announce_flood(&self, extension: &ExtensionRef, fault: &Fault) {
        let ExtensionRef { id: extension, generation, .. } = extension.clone();
        let (generation, phase) = (Some(generation), "host call".to_owned());
        self.announce(
            EXTENSION_ERROR,
            &ExtensionError { extension, generation, phase, fault: fault.clone() },
        );
    }

    /// A fact that the system is told of, before it is taken.
    pub(crate) fn follow_fact(self: &Arc<Self>, fact: &Body) {
        let error = match fact {
            Body::ExtensionRemoved(removed) => return self.uninstalled(&removed.id),
            Body::ExtensionRejected(fact) => {
                let ExtensionRejected { id: extension, fault } = fact.clone();
                ExtensionError { extension, generation: None, phase: "discovery".to_owned(), fault }
            }
            Body::ExtensionFaulted(fact) => {
                let ExtensionFaulted { id: extension, generation, phase, fault } = fact.clone();
                ExtensionError { extension, generation: Some(generation), phase, fault }
            }
            Body::ExtensionReported(ExtensionReported {
                id,
                generation,
                command,
                outcome: LifecycleOutcome::Failed(fault),
            }) => {
                let (extension, generation, phase) =
                    (id.clone(), Some(*generation), command.name().to_owned());
                ExtensionError { extension, generation, phase, fault: fault.clone() }
            }
            _ => return,
        };
        self.announce(EXTENSION_ERROR, &error);
    }

    /// Closes the bus: nothing is handed over any more, and its streams' heads are anchored.
    pub(crate) async fn close_bus(&self) -> Result<(), Problem> {
        self.messaging.bus.clone().close(CLOSE_TIMEOUT).await;
        for stream in holdfast_bus::streams() {
            if let Some(head) = self.store.head(&stream)? {
                self.system.tell(HeadAnchored { stream, seq: head.seq, hash: head.hash });
            }
        }
        Ok(())
    }

    /// Waits a while for something that comes with extensions that come up.
    pub(crate) async fn soon<T>(&self, mut look: impl FnMut(&Self) -> Result<T, Fault>) -> Result<T, Fault> {
        const START_WAIT: Millis = Millis(10_000);
        let mut changes = self.messaging.changes.subscribe();
        let mut last = match look(self) {
            Ok(found) => return Ok(found),
            Err(fault) => fault,
        };
        let mut late = self.clock.sleep(START_WAIT);
        loop {
            tokio::select! {
                biased;
                changed = changes.changed() => {
                    if changed.is_err() {
                        return Err(Fault::new(Code::BusClosed, "the system is no longer there"));
                    }
                }
                () = &mut late => return Err(last),
            }
            match look(self) {
                Ok(found) => return Ok(found),
                Err(fault) => last = fault,
            }
        }
    }
}
