//! The hub: the surface that hands what happens in sessions to the feeds of the clients that have opened them. It keeps nothing of it:
//! what waits for a person, and how a turn ended, is in the frames.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_contract::ids::{ExtensionId, StreamId};
use holdfast_runtime::{OutputDelta, OutputKind, SessionEvent, Surface};

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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let line = line::notice(&Notification::Told { extension, text });
        let mut told: Vec<Outgoing> = Vec::new();
        for feed in self.feeds().iter() {
            if !told.iter().any(|lines| lines.is_same(&feed.lines)) {
                feed.lines.send(line.clone());
                told.push(feed.lines.clone());
            }
        }
    }
}

impl Surface for Hub {
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
