//! The sessions that are open in this process: opening, resuming, closing, erasing.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::effect::Input;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::{AgentId, Millis, Seq, StreamId};
use holdfast_contract::message::Origin;
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::{Parent, SessionSettings, SessionStarted};
use holdfast_kernel::{BEHAVIOUR, Session};
use holdfast_policy::Routing;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;

use super::{SessionActor, SessionCommand, SessionHandle};
use crate::history::fork::fork;
use crate::history::rebuild::rebuild;
use crate::history::upkeep;
use crate::runtime::{Inner, Runtime};

/// A session to open.
pub struct NewSession {
    /// Its stream.
    pub id: StreamId,
    /// Where it comes from.
    pub origin: Origin,
    /// The agent that answers.
    pub agent: AgentId,
    /// The agent's instructions.
    pub instructions: Content,
    /// Its settings.
    pub settings: SessionSettings,
}

/// The open sessions by their streams.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<BTreeMap<StreamId, SessionHandle>>);

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<StreamId, SessionHandle>> {
        self.0.lock()
    }

    /// A session that is open in this process.
    pub(crate) fn get(&self, id: &StreamId) -> Option<SessionHandle> {
        self.lock().get(id).cloned()
    }

    /// Removes a session whose actor has ended. Another actor that has taken its place stays.
    pub(crate) fn forget(&self, id: &StreamId, inbox: &mpsc::UnboundedSender<SessionCommand>) {
        let mut sessions = self.lock();
        if sessions.get(id).is_some_and(|handle| handle.inbox.same_channel(inbox)) {
            sessions.remove(id);
        }
    }

    /// Closes a session if it is open.
    async fn close(&self, id: &StreamId) -> Result<(), Problem> {
        match self.get(id) {
            Some(handle) => handle.close().await,
            None => Ok(()),
        }
    }

    /// Releases a session unless it is in use. Answers whether nobody has it open.
    pub(crate) async fn release(&self, id: &StreamId) -> Result<bool, Problem> {
        match self.get(id) {
            Some(handle) => handle.release(false).await.unwrap_or(Ok(true)),
            None => Ok(true),
        }
    }

    /// Does something while nobody can open the session; none if it is open.
    pub(crate) fn unless_open<T>(&self, id: &StreamId, work: impl FnOnce() -> T) -> Option<T> {
        let sessions = self.lock();
        (!sessions.contains_key(id)).then(work)
    }

    /// Releases the sessions that nobody has used since this was last called. Returns how many these were.
    async fn release_unused(&self) -> usize {
        let handles: Vec<SessionHandle> = self.lock().values().cloned().collect();
        let asked: Vec<_> = handles.iter().map(|handle| handle.release(true)).collect();
        let mut released = 0;
        for answer in asked {
            released += usize::from(matches!(answer.await, Ok(Ok(true))));
        }
        released
    }

    /// Closes every session.
    pub(crate) async fn close_all(&self) -> Result<(), Problem> {
        let handles: Vec<SessionHandle> = self.lock().values().cloned().collect();
        for handle in handles {
            // A session may have ended by itself in the meantime.
            handle
                .close()
                .await
                .or_else(|problem| if problem.code == Code::SessionEnded { Ok(()) } else { Err(problem) })?;
        }
        Ok(())
    }
}

impl Runtime {
    /// Opens a new session.
    pub fn open(&self, new: NewSession) -> Result<SessionHandle, Problem> {
        self.inner().open(new, None, 0)
    }

    /// Resumes a session where it stopped. What was in progress goes on, as far as that is safe.
    pub fn resume(&self, id: &StreamId) -> Result<SessionHandle, Problem> {
        self.inner().resume(id)
    }

    /// The number of sessions that are open in this process.
    pub fn open_sessions(&self) -> usize {
        self.inner().sessions.lock().len()
    }

    /// Whether a session is open in this process.
    pub fn is_open(&self, id: &StreamId) -> bool {
        self.inner().sessions.lock().contains_key(id)
    }

    /// Copies a session under a new id, up to a frame. Gives the number of frames.
    pub fn fork(&self, from: &StreamId, last: Option<Seq>, to: &StreamId) -> Result<Seq, Problem> {
        self.store().flush()?;
        fork(self.store(), from, last, to)
    }

    /// Erases a session's content permanently, after closing it. Gives the number of bodies that were erased.
    pub async fn erase(&self, id: &StreamId, reason: &str) -> Result<u64, Problem> {
        self.inner().sessions.close(id).await?;
        let erased = upkeep::to_erase(self.store(), id, reason)?;
        self.record(erased.clone()).await?;
        upkeep::erase_now(self.store(), &*self.inner().clock, &erased)
    }

    /// Releases the sessions that nobody has used since this was last called. The next use resumes them. Returns
    /// how many these were.
    pub async fn release_unused_sessions(&self) -> usize {
        self.inner().sessions.release_unused().await
    }

    /// Does that at this interval, until the runtime is dropped.
    pub fn watch_unused_sessions(&self, every: Millis) {
        let (inner, clock) = (Arc::downgrade(self.inner()), self.inner().clock.clone());
        tokio::spawn(async move {
            loop {
                clock.sleep(every).await;
                let Some(inner) = inner.upgrade() else { return };
                inner.sessions.release_unused().await;
            }
        });
    }
}

impl Inner {
    pub(crate) fn open(
        self: &Arc<Self>,
        new: NewSession,
        parent: Option<Parent>,
        depth: u8,
    ) -> Result<SessionHandle, Problem> {
        // Sessions of agents have ids that are made from their parents'.
        if parent.is_none() {
            new.id.check_session()?;
        }
        // Held until the session is listed: its actor may be looked up before this returns.
        let mut sessions = self.sessions.lock();
        let log = self.store.stream(&new.id)?;
        if log.head().is_some() || sessions.contains_key(&new.id) {
            let problem =
                Problem::new(Code::TurnUnexpected, format!("there is a session `{}` already", new.id));
            return Err(problem.help("Resume it, or choose another id."));
        }
        let NewSession { id, origin, agent, instructions, mut settings } = new;
        if parent.is_none() {
            self.opened_at(&origin);
        }
        let policy = self.policy_in_force()?.under(settings.pinned_profile);
        settings.limits = policy.caps().narrow(settings.limits);
        settings.authoritative_routing &= policy.routing() == Routing::Authoritative;
        settings.profile = Some(policy.profile_name());
        let settings = Arc::new(settings);
        let body = SessionStarted {
            kernel: BEHAVIOUR,
            origin,
            agent,
            instructions,
            parent,
            depth,
            settings: settings.clone(),
        };
        let started =
            Input { at: self.clock.now(), source: FrameSource::Host, cause: None, body: body.into() };
        let mut handle = SessionActor::start(self.clone(), Session::new(id.clone()), log, vec![started]);
        handle.settings = Some(settings);
        sessions.insert(id, handle.clone());
        Ok(handle)
    }

    pub(crate) fn resume(self: &Arc<Self>, id: &StreamId) -> Result<SessionHandle, Problem> {
        // Held until the session is listed: a stream has one actor, even if several callers resume it at the same time.
        let mut sessions = self.sessions.lock();
        if let Some(handle) = sessions.get(id) {
            return Ok(handle.clone());
        }
        let log = self.store.stream(id)?;
        if log.head().is_none() {
            return Err(Problem::new(Code::StoreMissing, format!("there is no session `{id}`")));
        }
        let rebuilt = rebuild::<Session>(&self.store, id)?;
        log.append(rebuilt.missing)?;
        let first = if rebuilt.machine.is_busy() { vec![SessionActor::resumed(self)] } else { Vec::new() };
        let handle = SessionActor::start(self.clone(), rebuilt.machine, log, first);
        sessions.insert(id.clone(), handle.clone());
        Ok(handle)
    }
}
