//! Where the user is reached with what belongs to no conversation: a notice, a reminder, the answer of a task.
//!
//! A notice that names no channel goes to the place where the user was last active: a channel, or the chats of the terminal. If that
//! is not there any more it goes to the default channel, else to any chat that is open, and else it waits until one of these is there.
//! Each place has an order of its own there, so that what waits for one delays nothing for another.

use std::sync::Arc;

use holdfast_bus::{Delivery, NewEvent, topics as known};
use holdfast_contract::attachment::{self, Attachment};
use holdfast_contract::content::Content;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::hook::Artifact;
use holdfast_contract::ids::{ExtensionId, Millis, StreamId};
use holdfast_contract::message::Origin;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::ChannelFeatures;

use super::router::unsendable;
use super::subscriptions::gone;
use super::topics::{OutgoingMessage, TerminalNotice, UserMessage, UserNotice};
use crate::history::recorded_start;
use crate::runtime::{Inner, Runtime};
use crate::session::TurnReport;

/// The terminal as a channel: the origin of its sessions, and the id that notices may name.
pub(super) const TERMINAL: &str = "chat";

/// The user of the terminal and of other clients of the home, as messages name them.
const OWNER: &str = "owner";

/// How long one attempt waits for the user: a day. Then it makes room for what waits for another place, and is repeated.
pub(super) const REACH_WAIT: Millis = Millis(86_400_000);

/// Where a user was active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ActivePlace {
    /// In a chat of the terminal.
    Terminal,
    /// On a channel.
    Channel {
        /// Which one.
        channel: ExtensionId,
        /// As whom.
        user: String,
    },
}

/// What became of a notice.
enum Reached {
    /// The chats that are open have shown it.
    Shown,
    /// It is to be sent on a channel; the channel knows to whom if no user is named.
    Channel(ExtensionId, Option<String>),
}

impl Runtime {
    /// Runs a turn with what the user typed on a surface that is a channel: it is published on `user.message`, and the surface runs the
    /// turn. The event's id is the message's.
    pub async fn say_on_surface(
        &self,
        session: &StreamId,
        surface: &str,
        text: String,
        attachments: Vec<Attachment>,
    ) -> Result<TurnReport, Problem> {
        let inner = self.inner();
        let files: Vec<Artifact> = attachments.iter().cloned().map(Into::into).collect();
        attachment::check(&files)?;
        let handle = self.resume(session)?;
        let message = UserMessage {
            text: text.clone(),
            user_id: OWNER.to_owned(),
            channel_id: surface.into(),
            message_id: None,
            attachments,
            thread_id: None,
            session: Some(session.clone()),
        };
        let event = NewEvent::new(known::USER_MESSAGE, Content::of(&message))
            .key(session.to_string())
            .source(FrameSource::Surface(surface.into()));
        let published = inner.put(event).await?;
        inner.active_at(ActivePlace::Terminal);
        handle.say_published(surface, (Content::text(text), files), published.id.to_string()).await
    }
}

impl Inner {
    /// The user did something there. Where the policy names owners, only they count.
    pub(super) fn active_at(&self, place: ActivePlace) {
        if self.counts(&place) {
            let before = self.messaging.last_place.lock().replace(place.clone());
            if before.as_ref() != Some(&place) {
                self.messaging.notify_changed();
            }
        }
    }

    fn counts(&self, place: &ActivePlace) -> bool {
        match (place, self.policy_in_force()) {
            (ActivePlace::Terminal, _) => true,
            (ActivePlace::Channel { channel, user }, Ok(policy)) => {
                policy.owners().is_empty() || policy.owner_at(&Origin::channel(channel, user)).is_some()
            }
            (ActivePlace::Channel { .. }, Err(_)) => false,
        }
    }

    /// A session was opened at this origin.
    pub(crate) fn opened_at(&self, origin: &Origin) {
        if origin.channel == TERMINAL && origin.user.is_none() {
            *self.messaging.knows_chats.lock() = Some(true);
        }
    }

    /// Whether there is or was a chat of the terminal. The log is searched once; from then on every session is noted.
    pub(super) fn knows_chats(&self) -> bool {
        let mut known = self.messaging.knows_chats.lock();
        let is_chat = |place: &ActivePlace| *place == ActivePlace::Terminal;
        *known.get_or_insert_with(|| self.recorded_place(is_chat).is_ok_and(|place| place.is_some()))
    }

    /// Where the user was last active, as far as this process or the log knows.
    pub(super) fn last_place(&self) -> Option<ActivePlace> {
        if let Some(place) = self.messaging.last_place.lock().clone().filter(|place| self.counts(place)) {
            return Some(place);
        }
        let found = self.recorded_place(|place| self.counts(place)).ok().flatten()?;
        self.messaging.last_place.lock().get_or_insert_with(|| found.clone());
        Some(found)
    }

    /// The place of the session that was last written to, of those that fit.
    pub(super) fn recorded_place(
        &self,
        fits: impl Fn(&ActivePlace) -> bool,
    ) -> Result<Option<ActivePlace>, Problem> {
        let mut sessions = self.store.streams()?;
        sessions.retain(|info| info.id.is_session());
        sessions.sort_by_key(|info| std::cmp::Reverse(info.last_at));
        for info in sessions {
            let Some(body) = recorded_start(&self.store, &info.id)? else { continue };
            let (channel, user) = (body["origin"]["channel"].as_str(), body["origin"]["user"].as_str());
            let place = match (channel, user) {
                (Some(TERMINAL), None) => ActivePlace::Terminal,
                (Some(channel), Some(user)) => {
                    let channel = channel.strip_prefix("extension/").unwrap_or(channel).into();
                    ActivePlace::Channel { channel, user: user.to_owned() }
                }
                _ => continue,
            };
            if body["parent"].is_null() && fits(&place) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Sends something to the user, and then these files: on the channel that is named, in the chat in which it was asked for, or where
    /// the user can be reached. If that is nowhere, it waits.
    pub(super) async fn notify(
        &self,
        notice: UserNotice,
        files: Vec<Artifact>,
        delivery: &Delivery,
    ) -> Result<(), Fault> {
        let UserNotice { text, channel_id, user_id, session, extension } = notice;
        let whose = match &delivery.event.source {
            FrameSource::Extension(extension) => extension.id.clone(),
            _ => extension.unwrap_or_else(|| "agent".into()),
        };
        let made = files.iter().map(|file| format!("\n{}", unsendable(&file.into())));
        let shown = TerminalNotice {
            channel_id,
            user_id,
            ..TerminalNotice::text(text.clone() + &made.collect::<String>(), whose)
        };
        if shown.text.is_empty()
            || (shown.channel_id.is_none()
                && session.is_some_and(|session| self.tell_chats(Some(&session), &shown)))
        {
            return Ok(());
        }
        let of = delivery.event.id.to_string();
        match self.soon(|inner| inner.reach(&shown)).await {
            Ok(Reached::Shown) => Ok(()),
            Ok(Reached::Channel(channel, user)) => {
                self.send(&channel, OutgoingMessage::text(text, user.clone()), delivery).await?;
                self.send_files(&channel, user, files, delivery).await
            }
            Err(_) => self.wait_for_user(shown, &of, format!("{of}/terminal")).await,
        }
    }

    /// Shows a notice in the chats, or finds the channel for it. The fault says that the user cannot be reached now.
    fn reach(&self, notice: &TerminalNotice) -> Result<Reached, Fault> {
        let in_chats = || {
            if self.tell_chats(None, notice) {
                Ok(Reached::Shown)
            } else {
                Err(Fault::new(Code::ChannelUnknown, "no chat is open, and no channel reaches the user"))
            }
        };
        if notice.chats_only {
            return in_chats();
        }
        let user = notice.user_id.as_deref();
        if let Some(channel) = &notice.channel_id {
            return if self.channel(channel).is_ok() || self.is_installed(channel) {
                self.on_channel(channel, user)
            } else if channel.as_str() == TERMINAL {
                in_chats()
            } else {
                // Its delivery fails, and says that there is no such channel.
                Ok(Reached::Channel(channel.clone(), notice.user_id.clone()))
            };
        }
        let place = match user {
            Some(user) => self.place_of(user),
            None => self.last_place(),
        };
        let there = match &place {
            Some(ActivePlace::Terminal) => in_chats(),
            // Without owners the channel itself knows whom it belongs to.
            Some(ActivePlace::Channel { channel, user: active }) => {
                let named = self.policy_in_force().is_ok_and(|policy| !policy.owners().is_empty());
                self.on_channel(channel, user.or(named.then_some(active.as_str())))
            }
            None => Err(Fault::new(Code::ChannelUnknown, "the user was not active yet")),
        };
        let on_default = |_| self.on_channel(&self.default_channel()?, user);
        there.or_else(on_default).or_else(|_| in_chats())
    }

    /// Where a user of this name was last active.
    fn place_of(&self, user: &str) -> Option<ActivePlace> {
        let is_theirs =
            |place: &ActivePlace| matches!(place, ActivePlace::Channel { user: of, .. } if of == user);
        let last = self.messaging.last_place.lock().clone().filter(is_theirs);
        last.or_else(|| self.recorded_place(is_theirs).ok().flatten())
    }

    /// A channel, if it is there or comes up again and somebody is known on it: the user who is named, its owner if the policy names
    /// one there, the recipient that the channel itself knows, or without owners the user who wrote there last.
    fn on_channel(&self, channel: &ExtensionId, user: Option<&str>) -> Result<Reached, Fault> {
        let policy = self.policy_in_force().map_err(|problem| problem.to_fault())?;
        let owner = policy.owners().iter().find(|owner| owner.channel == *channel);
        let user = user.or(owner.map(|owner| owner.user.as_str()));
        let reached = || Reached::Channel(channel.clone(), user.map(str::to_owned));
        let entry = match self.channel(channel) {
            Ok(entry) => entry,
            Err(_) if self.is_installed(channel) && (user.is_some() || policy.owners().is_empty()) => {
                return Ok(reached());
            }
            Err(fault) => return Err(fault),
        };
        let knows = user.is_some() || ChannelFeatures::of(&entry.payload).messages;
        let last = || self.last_user(channel).map_err(|problem| problem.to_fault());
        if knows || (policy.owners().is_empty() && last()?.is_some()) {
            return Ok(reached());
        }
        let message = format!("no user is known on `{channel}` yet, and it has no `send-message`");
        Err(Fault::new(Code::ChannelUnknown, message))
    }

    /// Shows something in the chats that are open, or in those of a session. Says whether there was one.
    pub(super) fn tell_chats(&self, session: Option<&StreamId>, notice: &TerminalNotice) -> bool {
        let text = self.home.redact_text(notice.text.clone());
        self.surface.tell_user(session, &notice.extension, &text)
    }

    /// Keeps something until the user can be reached, once under this key.
    pub(super) async fn wait_for_user(
        &self,
        notice: TerminalNotice,
        of: &str,
        once: String,
    ) -> Result<(), Fault> {
        let event = NewEvent::new(known::USER_TERMINAL, Content::of(&notice));
        let event = NewEvent { key: notice.order(), ..event.correlation(of).idempotency(once) };
        self.put(event).await.map(drop).map_err(|problem| problem.to_fault())
    }

    /// Shows or sends something as soon as the user can be reached. An attempt waits for a day and does not count.
    pub(super) async fn reach_later(
        self: &Arc<Self>,
        notice: TerminalNotice,
        delivery: &Delivery,
    ) -> Result<(), Fault> {
        let mut changes = self.messaging.changes.subscribe();
        let mut late = self.clock.sleep(REACH_WAIT);
        loop {
            match self.reach(&notice) {
                Ok(Reached::Shown) => return Ok(()),
                Ok(Reached::Channel(channel, user)) => {
                    return self.send(&channel, OutgoingMessage::text(notice.text, user), delivery).await;
                }
                Err(fault) => tokio::select! {
                    biased;
                    changed = changes.changed() => changed.map_err(|_| gone())?,
                    () = &mut late => {
                        let message = format!("nobody could be reached for a day: {}", fault.message);
                        return Err(Fault::new(Code::SubscriberDown, message));
                    }
                },
            }
        }
    }
}
