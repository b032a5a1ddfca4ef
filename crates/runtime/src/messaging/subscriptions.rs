//! Who subscribes: what manifests say, what extensions ask for in their code, and the router's own. A subscription is the extension's,
//! not a generation's: the generation that is active when an event is delivered gets it, so that a reload loses no event.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_bus::{Delivery, Overflow, Pattern, Subscription};
use holdfast_contract::content::Content;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::host_call::topic::is_in_memory;
use holdfast_contract::ids::{ExtensionId, Generation, Millis, Topic};
use holdfast_contract::manifest::HandlerSpec;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::role::Role;
use holdfast_contract::system_frames::{ExtensionFaulted, FoundExtension};
use holdfast_contract::wire::Call;
use serde::Serialize;

use super::topics;
use crate::calls::{start_call, wait};
use crate::extensions::StartWait;
use crate::host::{SystemHost, content_of};
use crate::runtime::Inner;

/// Who is installed, what they want, and what the bus has of it.
#[derive(Default)]
pub(super) struct Subscriptions {
    installed: BTreeMap<ExtensionId, FoundExtension>,
    /// What extensions asked for in their code, by the generation that did.
    asked: BTreeMap<ExtensionId, BTreeMap<Generation, BTreeSet<Topic>>>,
    /// The bus's subscribers; none before the first time.
    current: Option<BTreeSet<SubscriptionKey>>,
    /// The channels that have queues of their own: all that were loaded, or that an earlier process left with events.
    channels: Arc<BTreeSet<ExtensionId>>,
    /// Those of them that the bus has.
    current_channels: Arc<BTreeSet<ExtensionId>>,
    patterns: Vec<Pattern>,
}

/// One subscription of one extension.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SubscriptionKey {
    extension: ExtensionId,
    topic: Topic,
    handler: HandlerKind,
}

/// A manifest's handler, in an order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum HandlerKind {
    Notify,
    Agent,
    Itself,
}

impl From<HandlerSpec> for HandlerKind {
    fn from(handler: HandlerSpec) -> Self {
        match handler {
            HandlerSpec::NotifyUser => Self::Notify,
            HandlerSpec::InvokeAgent => Self::Agent,
            HandlerSpec::Custom => Self::Itself,
        }
    }
}

impl Subscriptions {
    /// Whether an extension has to do with the bus at all.
    fn concerns(&self, id: &ExtensionId) -> bool {
        let has = |found: &FoundExtension| !found.subscribes.is_empty();
        let subscribed =
            |current: &BTreeSet<SubscriptionKey>| current.iter().any(|wanted| wanted.extension == *id);
        self.installed.get(id).is_some_and(has)
            || self.asked.contains_key(id)
            || self.current.as_ref().is_some_and(subscribed)
    }

    /// The extensions that handle the events of a topic that is kept in memory only.
    pub(super) fn in_memory(&self, topic: &str) -> Vec<ExtensionId> {
        let of_topic =
            |key: &&SubscriptionKey| key.topic.as_str() == topic && key.handler == HandlerKind::Itself;
        let current = self.current.iter().flatten();
        current.filter(of_topic).map(|key| key.extension.clone()).collect()
    }

    /// Whether an extension wants events of this topic.
    pub(super) fn is_wanted(&self, topic: &Topic) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(topic))
    }
}

/// An event as an extension is handed it.
#[derive(Serialize)]
struct EventArguments<'a> {
    id: String,
    topic: &'a Topic,
    payload: &'a serde_json::Value,
    key: Option<&'a str>,
    correlation: Option<&'a str>,
    attempt: u32,
    repeat: bool,
    /// The extension that published it, or the part of the program.
    source: &'a str,
    at: Millis,
}

/// Who published an event, in a word.
fn publisher(source: &FrameSource) -> &str {
    match source {
        FrameSource::Extension(extension) => extension.id.as_str(),
        FrameSource::Surface(surface) => surface,
        FrameSource::Model(model) => model.as_str(),
        FrameSource::Kernel | FrameSource::Host | FrameSource::Policy(_) => "host",
    }
}

/// How long a call waits while the next generation of its extension takes over.
const RELOAD_WAIT: Millis = Millis(30_000);

impl Inner {
    /// Extensions are installed, or changed.
    pub(crate) fn installed(self: &Arc<Self>, found: &[FoundExtension]) {
        let mut subscriptions = self.messaging.subscriptions();
        let before = found.iter().any(|found| subscriptions.concerns(&found.id));
        subscriptions.installed.extend(found.iter().map(|found| (found.id.clone(), found.clone())));
        let concerned = before || found.iter().any(|found| subscriptions.concerns(&found.id));
        drop(subscriptions);
        if concerned {
            self.sync_subscriptions_later();
        }
    }

    /// The last good content of an extension starts: its subscriptions count if nothing of it was found.
    pub(crate) fn installed_last_good(self: &Arc<Self>, found: &FoundExtension) {
        if !self.messaging.subscriptions().installed.contains_key(&found.id) {
            self.installed(std::slice::from_ref(found));
        }
    }

    /// An extension is not installed any more.
    pub(crate) fn uninstalled(self: &Arc<Self>, id: &ExtensionId) {
        let mut subscriptions = self.messaging.subscriptions();
        let concerned = subscriptions.concerns(id);
        subscriptions.installed.remove(id);
        subscriptions.asked.remove(id);
        drop(subscriptions);
        if concerned {
            self.sync_subscriptions_later();
        }
    }

    /// A generation serves from now on: what those before it asked for is over.
    pub(crate) fn generation_replaced(self: &Arc<Self>, id: &ExtensionId, generation: Generation) {
        let mut subscriptions = self.messaging.subscriptions();
        if let Some(asked) = subscriptions.asked.get_mut(id) {
            asked.retain(|asking, _| *asking >= generation);
        }
        let concerned = subscriptions.concerns(id);
        drop(subscriptions);
        if concerned {
            self.sync_subscriptions_later();
        }
    }

    /// An extension subscribes in its code, or no longer does.
    pub(crate) async fn asked_for(
        self: &Arc<Self>,
        extension: &ExtensionRef,
        topic: Topic,
        subscribes: bool,
    ) -> Result<(), Problem> {
        Pattern::parse(topic.as_str())?;
        {
            let mut subscriptions = self.messaging.subscriptions();
            let asked = subscriptions.asked.entry(extension.id.clone()).or_default();
            let asked = asked.entry(extension.generation).or_default();
            if subscribes {
                asked.insert(topic)
            } else {
                asked.remove(&topic)
            };
        }
        self.messaging.stale.store(true, Ordering::SeqCst);
        self.sync_subscriptions().await
    }

    /// A channel is loaded: it gets queues of its own before it can say anything.
    pub(crate) async fn channel_loaded(self: &Arc<Self>, channel: ExtensionId) {
        let is_word = Pattern::parse(&format!("{}{channel}", topics::OUT)).is_ok();
        // What cannot be part of a topic has no messages.
        if !is_word || channel.as_str().contains(['*', '>']) {
            return;
        }
        let is_new = Arc::make_mut(&mut self.messaging.subscriptions().channels).insert(channel);
        if is_new {
            self.messaging.stale.store(true, Ordering::SeqCst);
            // Where it fails, the channel uses the shared queues until the next change.
            drop(self.sync_subscriptions().await);
        }
    }

    /// The events of an extension that is not active wait. Where extensions are only listed, all of them do.
    pub(crate) fn subscriptions_follow(&self, id: &ExtensionId) {
        let paused = self.inspects || self.extensions.active(id).is_none();
        self.paused_flag(id).store(paused, Ordering::Release);
        self.messaging.bus.wake();
    }

    /// The router delivers from now on, and what leads to turns once a turn can begin: a process that ends before that has not attempted
    /// it. Where extensions are only listed, it never delivers.
    pub(crate) fn start_router(self: &Arc<Self>) {
        if self.inspects {
            return;
        }
        self.messaging.router_paused.store(false, Ordering::Release);
        self.messaging.bus.wake();
        let inner = self.clone();
        tokio::spawn(async move {
            inner.extensions.startup().ready(StartWait::Start, &*inner.clock).await;
            inner.messaging.turns_paused.store(false, Ordering::Release);
            inner.messaging.bus.wake();
            inner.messaging.router_started.send_replace(true);
        });
    }

    /// Waits until the router has noticed that turns can begin, if they can.
    pub(crate) async fn router_settled(&self) {
        if !self.inspects && !self.extensions.startup().holds_turns(self.clock.steady()) {
            // The sender lives as long as this.
            let _ = self.messaging.router_started.subscribe().wait_for(|started| *started).await;
        }
    }

    fn paused_flag(&self, id: &ExtensionId) -> Arc<AtomicBool> {
        let mut flags = self.messaging.paused.lock();
        let new = || Arc::new(AtomicBool::new(self.inspects || self.extensions.active(id).is_none()));
        flags.entry(id.clone()).or_insert_with(new).clone()
    }

    /// The fault of a delivery. If the extension is installed and not active, the event waits and the attempt does not count.
    pub(super) fn postponed_if_down(&self, id: &ExtensionId, fault: Fault) -> Fault {
        let is_missing = matches!(fault.code, Code::ExtensionUnknown | Code::ChannelUnknown);
        if is_missing && self.is_installed(id) && self.extensions.active(id).is_none() {
            Fault::new(Code::SubscriberDown, format!("`{id}` is not active"))
        } else {
            fault
        }
    }

    /// Whether an extension is installed, up or not.
    pub(super) fn is_installed(&self, id: &ExtensionId) -> bool {
        self.messaging.subscriptions().installed.contains_key(id)
    }

    pub(crate) fn sync_subscriptions_later(self: &Arc<Self>) {
        self.messaging.stale.store(true, Ordering::SeqCst);
        let inner = self.clone();
        // A failure is retried with the next change, and reported to those who wait for the system to settle.
        tokio::spawn(async move { drop(inner.sync_subscriptions().await) });
    }

    /// Gives the bus the subscribers that are wanted, if it may have others.
    pub(crate) async fn sync_subscriptions(self: &Arc<Self>) -> Result<(), Problem> {
        let messaging = &self.messaging;
        let _alone = messaging.syncing.lock().await;
        if !messaging.stale.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let wanted = self.wanted();
        let channels = {
            let left = messaging.subscriptions().current.is_none().then(|| self.channels_with_events());
            let mut subscriptions = messaging.subscriptions();
            Arc::make_mut(&mut subscriptions.channels).extend(left.into_iter().flatten());
            let channels = subscriptions.channels.clone();
            if subscriptions.current.as_ref() == Some(&wanted) && subscriptions.current_channels == channels {
                return Ok(());
            }
            channels
        };
        // One that cannot be read is left out; the loader has refused the extension for it.
        let on_bus = wanted.iter().filter(|wanted| !is_in_memory(wanted.topic.as_str()));
        let theirs = on_bus.filter_map(|wanted| self.subscription(wanted).ok());
        let theirs: Vec<Subscription> = theirs.collect();
        let patterns = theirs.iter().flat_map(|subscription| subscription.patterns.clone()).collect();
        let mut all = self.routing(&channels)?;
        all.extend(theirs);
        let set = messaging.bus.subscribe(all).await;
        if let Err(problem) = set {
            messaging.stale.store(true, Ordering::SeqCst);
            return Err(problem);
        }
        let mut subscriptions = messaging.subscriptions();
        (subscriptions.current, subscriptions.patterns) = (Some(wanted), patterns);
        subscriptions.current_channels = channels;
        Ok(())
    }

    /// What the installed extensions want and may have: what serves has the word, and where nothing does, what was found last.
    fn wanted(&self) -> BTreeSet<SubscriptionKey> {
        let subscriptions = self.messaging.subscriptions();
        let mut all = BTreeMap::new();
        for (id, found) in &subscriptions.installed {
            let serving =
                self.extensions.active(id).and_then(|serving| self.extensions.found(&serving.digest));
            let found = serving.as_ref().unwrap_or(found);
            let held = self.held_by(found);
            // The loader has warned of those that are left out, and those in code were refused.
            let may = |topic: &Topic| held.may_subscribe(topic.as_str());
            for subscription in found.subscribes.iter().filter(|subscription| may(&subscription.topic)) {
                all.insert((id.clone(), subscription.topic.clone()), subscription.handler.into());
            }
            let asked = subscriptions.asked.get(id).into_iter().flat_map(BTreeMap::values).flatten();
            for topic in asked.filter(|topic| may(topic)) {
                all.entry((id.clone(), topic.clone())).or_insert(HandlerKind::Itself);
            }
        }
        let wanted = |((extension, topic), handler)| SubscriptionKey { extension, topic, handler };
        all.into_iter().map(wanted).collect()
    }

    fn subscription(self: &Arc<Self>, wanted: &SubscriptionKey) -> Result<Subscription, Problem> {
        let (inner, id, takes) = (Arc::downgrade(self), wanted.extension.clone(), wanted.handler);
        let handler = move |delivery: Delivery| {
            let (inner, id) = (inner.upgrade(), id.clone());
            async move {
                let inner = inner.ok_or_else(gone)?;
                let taken = match takes {
                    HandlerKind::Itself => inner.hand_to(&id, &delivery).await,
                    HandlerKind::Notify => inner.notify_of(&delivery).await,
                    HandlerKind::Agent => inner.invoke_for(&id, &delivery).await,
                };
                taken.map_err(|fault| inner.told_of(fault))
            }
        };
        let name = format!("{}/{}", wanted.extension, wanted.topic);
        // What an extension does not keep up with is its own: publishers and other subscribers go on.
        let subscription = Subscription {
            overflow: Overflow::DeadLetter,
            paused: match takes {
                HandlerKind::Itself | HandlerKind::Agent => self.paused_flag(&wanted.extension),
                HandlerKind::Notify => self.messaging.router_paused.clone(),
            },
            ..Subscription::new(name, &[wanted.topic.as_str()], handler)?
        };
        Ok(match takes {
            HandlerKind::Agent => super::turns::patient(subscription),
            HandlerKind::Itself | HandlerKind::Notify => subscription,
        })
    }

    /// Delivers an event to the active generation of an extension.
    async fn hand_to(self: &Arc<Self>, id: &ExtensionId, delivery: &Delivery) -> Result<(), Fault> {
        let event = &delivery.event;
        let handed = EventArguments {
            id: event.id.to_string(),
            topic: &event.topic,
            payload: event.payload.value(),
            key: event.key.as_deref(),
            correlation: event.correlation.as_deref(),
            attempt: delivery.attempt,
            repeat: delivery.repeat,
            source: publisher(&event.source),
            at: event.at,
        };
        let handed = self.call_role(id, Role::Subscriber, "on-event", Content::of(&handed)).await;
        handed.map(drop).map_err(|fault| self.postponed_if_down(id, fault))
    }

    /// Calls a function of an extension that is to be active, or soon.
    pub(crate) async fn call_role(
        self: &Arc<Self>,
        id: &ExtensionId,
        role: Role,
        function: &str,
        arguments: Content,
    ) -> Result<Content, Fault> {
        let inactive = || Fault::new(Code::ExtensionUnknown, format!("`{id}` is not active"));
        self.soon(|inner| inner.extensions.active(id).ok_or_else(inactive)).await?;
        let (serving, _guard) = self.extensions.enter(id, RELOAD_WAIT).await?;
        let instance = self.extensions.instance(&serving)?;
        let host = SystemHost::new(self, serving.clone(), None);
        let host = Arc::new(if role == Role::Renderer { host.for_renderer() } else { host });
        let call = Call::Function { role, function: function.to_owned(), arguments };
        let answer = wait(start_call(&instance, call, host)).await;
        // That it has no such function, or says itself that something is wrong, does not take it down.
        let broke = |fault: &&Fault| fault.code.is_crash() && fault.code != Code::ExtensionFault;
        if let Some(fault) = answer.as_ref().err().filter(broke) {
            let (id, generation, phase) = (id.clone(), serving.generation, function.to_owned());
            self.system.tell(ExtensionFaulted { id, generation, phase, fault: fault.clone() });
        }
        content_of(answer?, id, function)
    }

    /// Shows the user what an event says, because a manifest wants it so: on the channel that the event names, if it names one.
    async fn notify_of(&self, delivery: &Delivery) -> Result<(), Fault> {
        let payload = &delivery.event.payload;
        let word = |name: &str| payload.value().get(name)?.as_str().filter(|word| !word.is_empty());
        let notice = topics::UserNotice {
            channel_id: word("channel_id").map(Into::into),
            user_id: word("user_id").map(str::to_owned),
            ..topics::UserNotice::text(topics::message_text(payload))
        };
        self.notify(notice, Vec::new(), delivery).await
    }
}

pub(super) fn gone() -> Fault {
    Fault::new(Code::BusClosed, "the system is no longer there")
}
