//! The hub: the surface that carries what happens in sessions to those who watch them, and remembers what waits for a person.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_contract::content::Content;
use holdfast_contract::ids::{ExtensionId, Seq, StreamId};
use holdfast_runtime::{SessionEvent, Surface};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::protocol::Notification;

/// A surface for any number of clients.
#[derive(Default)]
pub struct Hub(Mutex<Watched>);

#[derive(Default)]
struct Watched {
    watchers: Vec<Watcher>,
    /// What waits for a person, by session and frame.
    waiting: BTreeMap<(StreamId, Seq), Notification>,
    next: u64,
}

struct Watcher {
    ticket: u64,
    session: StreamId,
    answers: bool,
    notices: mpsc::UnboundedSender<Notification>,
}

/// Watches a session until it is dropped.
pub(crate) struct Watch {
    hub: std::sync::Arc<Hub>,
    ticket: u64,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.hub.watched().watchers.retain(|watcher| watcher.ticket != self.ticket);
    }
}

impl Hub {
    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what happens in a session there, and gives what waits for a person in it.
    pub(crate) fn watch(
        self: &std::sync::Arc<Self>,
        session: &StreamId,
        answers: bool,
        notices: mpsc::UnboundedSender<Notification>,
    ) -> (Watch, Vec<Notification>) {
        let mut watched = self.watched();
        let ticket = watched.next;
        watched.next += 1;
        watched.watchers.push(Watcher { ticket, session: session.clone(), answers, notices });
        let waiting = watched.waiting.iter().filter(|((stream, _), _)| stream == session);
        let waiting = waiting.map(|(_, notice)| notice.clone()).collect();
        (Watch { hub: self.clone(), ticket }, waiting)
    }

    /// Tells everybody who is there.
    pub(crate) fn tell_all(&self, text: String) {
        self.watched().tell_all(None, text);
    }

    /// Whether this waits for a person.
    pub(crate) fn waits(&self, session: &StreamId, request: Seq) -> bool {
        self.watched().waiting.contains_key(&(session.clone(), request))
    }

    /// A question was answered: it waits no longer, and whoever shows it may take it down.
    pub(crate) fn answered(&self, session: &StreamId, request: Seq) {
        let mut watched = self.watched();
        if watched.waiting.remove(&(session.clone(), request)).is_some() {
            watched.send(session, &Notification::Answered { session: session.clone(), request });
        }
    }
}

impl Watched {
    fn tell_all(&mut self, extension: Option<ExtensionId>, text: String) {
        let notice = Notification::Told { extension, text };
        self.watchers.retain(|watcher| watcher.notices.send(notice.clone()).is_ok());
    }

    fn send(&mut self, session: &StreamId, notice: &Notification) {
        // Whoever has gone is forgotten.
        self.watchers
            .retain(|watcher| watcher.session != *session || watcher.notices.send(notice.clone()).is_ok());
    }
}

impl Surface for Hub {
    fn show(&self, stream: &StreamId, event: SessionEvent) {
        let session = stream.clone();
        let mut watched = self.watched();
        let notice = match event {
            SessionEvent::Text(text) => Notification::Text { session, text },
            SessionEvent::Reasoning(text) => Notification::Reasoning { session, text },
            SessionEvent::Progress { extension, text } => Notification::Progress { session, extension, text },
            SessionEvent::Approval(pending) => {
                let approval = pending.approval;
                let notice = Notification::Approval {
                    session,
                    approval,
                    call: pending.call.id,
                    tool: pending.call.tool,
                    extension: pending.extension,
                    arguments: value(&pending.call.arguments),
                    reasons: pending.reasons,
                };
                watched.waiting.insert((stream.clone(), approval), notice.clone());
                notice
            }
            SessionEvent::Question { request, extension, question } => {
                let notice = Notification::Question { session, request, extension, question };
                watched.waiting.insert((stream.clone(), request), notice.clone());
                notice
            }
            SessionEvent::Ended { outcome, answer, limit_set_in } => {
                watched.waiting.retain(|(waiting, _), _| waiting != stream);
                Notification::Ended { session, outcome, answer, limit_set_in }
            }
            // It is nobody's session, and so it is for everybody who is there.
            SessionEvent::Notice { extension, text } => return watched.tell_all(Some(extension), text),
            SessionEvent::Broken(problem) => Notification::Broken { session, problem },
        };
        watched.send(stream, &notice);
    }

    fn attended(&self, session: &StreamId) -> bool {
        self.watched().watchers.iter().any(|watcher| watcher.answers && watcher.session == *session)
    }
}

fn value(content: &Content) -> Value {
    content.value().cloned().unwrap_or_default()
}
