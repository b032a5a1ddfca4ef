//! The runner: waits until the next entry is due and fires it. Each due time fires once, also across restarts.

use std::sync::Arc;

use holdfast_contract::host_call::{HostCall, HostCallKind};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Lifecycle, now, on_thread};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::store::{Action, Entry, ScheduleStore};

/// Firings after which the rest of the minute is waited for. What is due again meanwhile fires once.
const MAX_FIRINGS_PER_MINUTE: u32 = 120;

/// The firings since a moment, and a minute after that moment.
#[derive(Clone, Copy, Default)]
struct Pace {
    firings: u32,
    until: u64,
}

/// Fires the entries of a store.
#[derive(Clone)]
pub(crate) struct ScheduleRunner {
    pub store: Arc<ScheduleStore>,
    pub changed: Arc<Notify>,
    host: Arc<Mutex<Option<Arc<dyn Host>>>>,
    running: Arc<Mutex<Option<AbortHandle>>>,
    pace: Arc<Mutex<Pace>>,
}

impl ScheduleRunner {
    pub(crate) fn new(store: ScheduleStore) -> Self {
        let (store, changed) = (Arc::new(store), Arc::new(Notify::new()));
        Self { store, changed, host: Arc::default(), running: Arc::default(), pace: Arc::default() }
    }

    /// Fires due entries, forever. If reading, writing or publishing fails, retries after a pause.
    async fn run(self, host: Arc<dyn Host>) {
        loop {
            if self.round(&host).await.is_ok() {
                continue;
            }
            tokio::select! {
                () = self.changed.notified() => {}
                () = pause(&host) => {}
            }
        }
    }

    /// Completes interrupted firings, then waits for the next entry and fires it.
    async fn round(&self, host: &Arc<dyn Host>) -> Result<(), Fault> {
        let store = self.store.clone();
        let entries = on_thread(move || store.entries()).await?;
        for (id, entry) in &entries {
            if let Some(due) = entry.firing {
                self.carry_out(host, id, due, entry).await?;
            }
        }
        let due = entries.into_iter().filter_map(|(id, entry)| Some((entry.next?, id))).min();
        let Some((due, id)) = due else {
            self.changed.notified().await;
            return Ok(());
        };
        tokio::select! {
            () = self.changed.notified() => Ok(()),
            waited = ask(host, HostCallKind::ScheduleWait, json!({ "until": due })) => {
                waited?;
                self.fire(host, &id, due).await
            }
        }
    }

    /// Fires an entry. Its start and its outcome are written to disk.
    async fn fire(&self, host: &Arc<dyn Host>, id: &str, due: u64) -> Result<(), Fault> {
        self.keep_pace(host).await?;
        let entry = self.entry(id).await?;
        let next = match &entry.when {
            None => None,
            Some(when) => {
                let now = ask(
                    host,
                    HostCallKind::ScheduleNext,
                    json!({ "when": when, "timezone": entry.timezone }),
                );
                now.await?["next"].as_u64()
            }
        };
        let (store, key) = (self.store.clone(), id.to_owned());
        let begun = on_thread(move || {
            store.edit(&key, |entry| {
                // Unless it was changed concurrently.
                let due_now = entry.next == Some(due);
                Ok(Some(if due_now { Entry { next, firing: Some(due), ..entry } } else { entry }))
            })
        });
        let entry = begun.await?;
        if entry.next == Some(due) { self.carry_out(host, id, due, &entry).await } else { Ok(()) }
    }

    /// Counts a firing, after a wait where there were many.
    async fn keep_pace(&self, host: &Arc<dyn Host>) -> Result<(), Fault> {
        let Pace { mut firings, mut until } = *self.pace.lock();
        if firings >= MAX_FIRINGS_PER_MINUTE {
            ask(host, HostCallKind::ScheduleWait, json!({ "until": until })).await?;
            firings = 0;
        }
        if firings == 0 {
            let minute = ask(host, HostCallKind::ScheduleNext, json!({ "in": "1m" })).await?;
            until = minute["next"].as_u64().unwrap_or_default();
        }
        *self.pace.lock() = Pace { firings: firings + 1, until };
        Ok(())
    }

    /// Performs the action of an entry and records the outcome. After a transient error the entry stays started, to be retried.
    async fn carry_out(&self, host: &Arc<dyn Host>, id: &str, due: u64, entry: &Entry) -> Result<(), Fault> {
        let outcome = match publish(host, id, due, entry).await {
            Ok(()) => "done".to_owned(),
            Err(fault) if is_transient(fault.code) => return Err(fault),
            Err(fault) => format!("failed: {}", fault.message),
        };
        let (store, id) = (self.store.clone(), id.to_owned());
        let ended = move || {
            store.edit(&id, |entry| Ok(Some(Entry { firing: None, fired: Some((due, outcome)), ..entry })))
        };
        on_thread(ended).await.map(drop)
    }

    async fn entry(&self, id: &str) -> Result<Entry, Fault> {
        let (store, id) = (self.store.clone(), id.to_owned());
        on_thread(move || {
            let gone = || Fault::new(Code::ToolFailed, format!("there is no schedule `{id}`"));
            store.entries()?.remove(&id).ok_or_else(gone)
        })
        .await
    }
}

/// Publishes the action of an entry, with an idempotency key per due time, so that repeats are one event.
async fn publish(host: &Arc<dyn Host>, id: &str, due: u64, entry: &Entry) -> Result<(), Fault> {
    let asked_in = entry.asked_in.as_ref();
    let (topic, mut payload) = match &entry.action {
        Action::Text(text) => ("system.user.notify", json!({ "text": text })),
        Action::Event { topic, payload } => (topic.as_str(), payload.clone()),
        Action::Task(task) => ("system.agent.task", json!({ "prompt": task })),
    };
    match (&entry.action, asked_in.and_then(|asked_in| asked_in.user.as_ref())) {
        (Action::Text(_) | Action::Task(_), Some((channel, user))) => {
            payload["channel_id"] = json!(channel);
            payload["user_id"] = json!(user);
        }
        (Action::Text(_), None) => {
            if let Some(asked_in) = asked_in {
                payload["session"] = json!(asked_in.session);
            }
        }
        (Action::Task(_), None) | (Action::Event { .. }, _) => {}
    }
    let key = format!("scheduler/{id}@{due}");
    ask(host, HostCallKind::EventPublish, json!({ "topic": topic, "payload": payload, "idempotency": key }))
        .await
        .map(drop)
}

/// Whether an error is transient: the disk is full or not writable, a subscriber is too far behind, or the system is shutting down.
fn is_transient(code: Code) -> bool {
    matches!(code, Code::StoreFull | Code::StoreWrite | Code::SubscriberBehind | Code::BusClosed)
}

/// The pause before a retry.
async fn pause(host: &Arc<dyn Host>) {
    let wait = async {
        let until = ask(host, HostCallKind::ScheduleNext, json!({ "in": "30s" })).await?["next"].clone();
        ask(host, HostCallKind::ScheduleWait, json!({ "until": until })).await
    };
    if wait.await.is_err() {
        // The host is gone; the task is about to be aborted.
        std::future::pending().await
    }
}

pub(crate) async fn ask(host: &Arc<dyn Host>, kind: HostCallKind, arguments: Value) -> Result<Value, Fault> {
    Ok(host.call(HostCall::of(kind, arguments)).await?.value().clone())
}

impl Lifecycle for ScheduleRunner {
    fn initialize(&self, host: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        *self.host.lock() = Some(host);
        now(Ok(()))
    }

    fn start(&self) -> Later<Result<(), Fault>> {
        let host = self.host.lock().clone();
        let (runner, running) = (self.clone(), self.running.clone());
        Box::pin(async move {
            let unready = || Fault::new(Code::ExtensionFault, "it was not initialised");
            let task = tokio::spawn(runner.run(host.ok_or_else(unready)?));
            *running.lock() = Some(task.abort_handle());
            Ok(())
        })
    }

    fn stop(&self) -> Later<Result<(), Fault>> {
        if let Some(running) = self.running.lock().take() {
            running.abort();
        }
        now(Ok(()))
    }
}
