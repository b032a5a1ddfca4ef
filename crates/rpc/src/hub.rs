//! The hub: the surface that hands what happens in sessions to the feeds of the clients that have opened them. It keeps nothing of it:
//! what waits for a person, and how a turn ended, is in the frames.

use std::sync::Arc;

use holdfast_contract::ids::{ExtensionId, StreamId};
use holdfast_runtime::{OutputDelta, OutputKind, SessionEvent, Surface};
use parking_lot::{Mutex, MutexGuard};

use crate::line;
use crate::outgoing::Outgoing;
use crate::protocol::Notification;
use crate::session_feed::SessionFeed;

/// A surface for any number of clients.
#[derive(Default)]
pub struct Hub(Mutex<Vec<Arc<SessionFeed>>>);

/// A feed that is in the hub until this is dropped.
pub(crate) struct Subscription {
    hub: Arc<Hub>,
    feed: Arc<SessionFeed>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.feeds().retain(|feed| !Arc::ptr_eq(feed, &self.feed));
    }
}

impl Hub {
    fn feeds(&self) -> MutexGuard<'_, Vec<Arc<SessionFeed>>> {
        self.0.lock()
    }

    /// Hands this feed what is provisional in its session.
    pub(crate) fn subscribe(self: &Arc<Self>, feed: Arc<SessionFeed>) -> Subscription {
        self.feeds().push(feed.clone());
        Subscription { hub: self.clone(), feed }
    }

    fn of(&self, session: &StreamId) -> Vec<Arc<SessionFeed>> {
        self.feeds().iter().filter(|feed| feed.session == *session).cloned().collect()
    }

    /// Tells every client that has a session open.
    pub(crate) fn tell_all(&self, extension: Option<ExtensionId>, text: String) {
        self.notify_all(&Notification::Told { extension, text });
    }

    /// Tells every client that has a session open that the owner was asked to stop.
    pub(crate) fn stopping(&self) {
        self.notify_all(&Notification::Stopping {});
    }

    fn notify_all(&self, notification: &Notification) {
        self.notify(notification, |_| true);
    }

    /// Sends each client that has such a feed a notification, once. Says whether there was one.
    fn notify(&self, notification: &Notification, fits: impl Fn(&SessionFeed) -> bool) -> bool {
        let line = line::notice(notification);
        let mut told: Vec<Outgoing> = Vec::new();
        for feed in self.feeds().iter().filter(|feed| fits(feed)) {
            if !told.iter().any(|lines| lines.is_same(&feed.lines)) {
                feed.lines.send(line.clone());
                told.push(feed.lines.clone());
            }
        }
        !told.is_empty()
    }
}

impl Surface for Hub {
    fn tell_user(&self, session: Option<&StreamId>, extension: &ExtensionId, text: &str) -> bool {
        let told = Notification::Told { extension: Some(extension.clone()), text: text.to_owned() };
        self.notify(&told, |feed| feed.notices && session.is_none_or(|session| feed.session == *session))
    }

    fn show(&self, stream: &StreamId, event: SessionEvent) {
        match event {
            SessionEvent::Output(delta) => {
                let after = delta.after;
                let notification = provisional(stream.clone(), delta);
                self.of(stream).iter().for_each(|feed| feed.output(after, &notification));
            }
            SessionEvent::Broken(problem) => {
                let notification = Notification::Broken { session: stream.clone(), problem };
                self.of(stream).iter().for_each(|feed| feed.lines.send(line::notice(&notification)));
            }
            // It belongs to no session, so every client is told.
            SessionEvent::Notice { extension, text } => self.tell_all(Some(extension), text),
            // Clients read these from the frames.
            SessionEvent::Approval(_) | SessionEvent::Question { .. } => {}
        }
    }

    fn attended(&self, session: &StreamId) -> bool {
        self.feeds().iter().any(|feed| feed.answers && feed.session == *session)
    }
}

fn provisional(session: StreamId, delta: OutputDelta) -> Notification {
    let OutputDelta { after, kind, text } = delta;
    match kind {
        OutputKind::Text { offset } => Notification::Text { session, after, offset, text },
        OutputKind::Reasoning => Notification::Reasoning { session, after, text },
        OutputKind::Progress { extension } => Notification::Progress { session, after, extension, text },
    }
}
