//! The alarm: sleeps until the next entry is due, and does what it says. One firing for each due time, across restarts.

use std::sync::{Arc, Mutex, PoisonError};

use holdfast_contract::host_call::{HostCall, HostCallKind};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Lifecycle, now, on_thread};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::book::{Action, Book, Entry};

/// The book, and who waits for what is in it.
#[derive(Clone)]
pub(crate) struct Alarm {
    pub book: Arc<Book>,
    pub changed: Arc<Notify>,
    host: Arc<Mutex<Option<Arc<dyn Host>>>>,
    running: Arc<Mutex<Option<AbortHandle>>>,
}

impl Alarm {
    pub(crate) fn new(book: Book) -> Self {
        let (book, changed) = (Arc::new(book), Arc::new(Notify::new()));
        Self { book, changed, host: Arc::default(), running: Arc::default() }
    }

    /// Fires what is due, for ever. When something cannot be read, written or published now, it is tried again after a pause.
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

    /// Ends what was begun, and fires what is due next when its time has come.
    async fn round(&self, host: &Arc<dyn Host>) -> Result<(), Fault> {
        let book = self.book.clone();
        let entries = on_thread(move || book.entries()).await?;
        for (id, entry) in &entries {
            if let Some(due) = entry.firing {
                self.carry_out(host, id, due, &entry.action).await?;
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

    /// Fires an entry, which is on disk before and after.
    async fn fire(&self, host: &Arc<dyn Host>, id: &str, due: u64) -> Result<(), Fault> {
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
        let (book, key) = (self.book.clone(), id.to_owned());
        let begun = on_thread(move || {
            book.edit(&key, |entry| match entry.next == Some(due) {
                true => Ok(Some(Entry { next, firing: Some(due), ..entry })),
                // It was changed in the meantime.
                false => Ok(Some(entry)),
            })
        });
        let entry = begun.await?;
        match entry.next == Some(due) {
            true => self.carry_out(host, id, due, &entry.action).await,
            false => Ok(()),
        }
    }

    /// Does what an entry says, and writes down what came of it. What could not be done now stays begun.
    async fn carry_out(
        &self,
        host: &Arc<dyn Host>,
        id: &str,
        due: u64,
        action: &Action,
    ) -> Result<(), Fault> {
        let outcome = match publish(host, id, due, action).await {
            Ok(()) => "done".to_owned(),
            Err(fault) if may_pass(fault.code) => return Err(fault),
            Err(fault) => format!("failed: {}", fault.message),
        };
        let (book, id) = (self.book.clone(), id.to_owned());
        let ended = move || {
            book.edit(&id, |entry| Ok(Some(Entry { firing: None, fired: Some((due, outcome)), ..entry })))
        };
        on_thread(ended).await.map(drop)
    }

    async fn entry(&self, id: &str) -> Result<Entry, Fault> {
        let (book, id) = (self.book.clone(), id.to_owned());
        on_thread(move || {
            let gone = || Fault::new(Code::ToolFailed, format!("there is no schedule `{id}`"));
            book.entries()?.remove(&id).ok_or_else(gone)
        })
        .await
    }
}

/// Publishes what an entry says, under a key that is the due time's own: however often it is published, it is one event.
async fn publish(host: &Arc<dyn Host>, id: &str, due: u64, action: &Action) -> Result<(), Fault> {
    let (topic, payload) = match action {
        Action::Text(text) => ("system.user.notify", json!({ "text": text })),
        Action::Event { topic, payload } => (topic.as_str(), payload.clone()),
        Action::Task(task) => ("system.agent.task", json!({ "prompt": task })),
    };
    let key = format!("scheduler/{id}@{due}");
    ask(host, HostCallKind::EventPublish, json!({ "topic": topic, "payload": payload, "idempotency": key }))
        .await
        .map(drop)
}

/// Whether what failed so may succeed later: the disk is full or cannot be written, somebody is too far behind, or all is about to stop.
fn may_pass(code: Code) -> bool {
    matches!(code, Code::StoreFull | Code::StoreWrite | Code::SubscriberBehind | Code::BusClosed)
}

/// A while.
async fn pause(host: &Arc<dyn Host>) {
    let wait = async {
        let until = ask(host, HostCallKind::ScheduleNext, json!({ "in": "30s" })).await?["next"].clone();
        ask(host, HostCallKind::ScheduleWait, json!({ "until": until })).await
    };
    if wait.await.is_err() {
        // There is nobody to ask any more.
        std::future::pending().await
    }
}

pub(crate) async fn ask(host: &Arc<dyn Host>, kind: HostCallKind, arguments: Value) -> Result<Value, Fault> {
    Ok(host.call(HostCall::of(kind, arguments)).await?.value().cloned().unwrap_or_default())
}

impl Lifecycle for Alarm {
    fn initialize(&self, host: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        *self.host.lock().unwrap_or_else(PoisonError::into_inner) = Some(host);
        now(Ok(()))
    }

    fn start(&self) -> Later<Result<(), Fault>> {
        let host = self.host.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (alarm, running) = (self.clone(), self.running.clone());
        Box::pin(async move {
            let unready = || Fault::new(Code::ExtensionFault, "it was not initialised");
            let task = tokio::spawn(alarm.run(host.ok_or_else(unready)?));
            *running.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.abort_handle());
            Ok(())
        })
    }

    fn stop(&self) -> Later<Result<(), Fault>> {
        if let Some(running) = self.running.lock().unwrap_or_else(PoisonError::into_inner).take() {
            running.abort();
        }
        now(Ok(()))
    }
}
