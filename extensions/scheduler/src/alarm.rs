//! The alarm: sleeps until the next entry is due, and does what it says. One firing for each due time, across restarts.

use std::sync::{Arc, Mutex, PoisonError};

use holdfast_contract::content::Content;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Ask, Host, Later};
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

    /// Fires what is due, for ever.
    async fn run(self, host: Arc<dyn Host>) {
        self.take_up(&host).await;
        loop {
            let book = self.book.clone();
            let entries = on_thread(move || book.entries()).await.unwrap_or_default();
            let due = entries.into_iter().filter_map(|(id, entry)| Some((entry.next?, id))).min();
            let Some((due, id)) = due else {
                self.changed.notified().await;
                continue;
            };
            let waited = tokio::select! {
                () = self.changed.notified() => continue,
                waited = ask(&host, "schedule.wait", json!({ "until": due })) => waited,
            };
            let done = match waited {
                Ok(_) => self.fire(&host, &id, due).await,
                Err(fault) => Err(fault),
            };
            // A host that cannot be asked, or a book that cannot be written: not before something changes.
            if done.is_err() {
                self.changed.notified().await;
            }
        }
    }

    /// What a stop came in the middle of. An event's key makes a second publication none; a text or a task is not repeated.
    async fn take_up(&self, host: &Arc<dyn Host>) {
        let book = self.book.clone();
        for (id, entry) in on_thread(move || book.entries()).await.unwrap_or_default() {
            let Some(due) = entry.firing else { continue };
            let outcome = match &entry.action {
                Action::Event { .. } => act(host, &id, due, &entry.action).await,
                _ => "it was interrupted, and is not repeated".to_owned(),
            };
            drop(self.over(id, due, outcome).await);
        }
    }

    /// Fires an entry, which is on disk before and after.
    async fn fire(&self, host: &Arc<dyn Host>, id: &str, due: u64) -> Result<(), Fault> {
        let entry = self.entry(id).await?;
        let next = match &entry.when {
            None => None,
            Some(when) => {
                let now = ask(host, "schedule.next", json!({ "when": when, "timezone": entry.timezone }));
                now.await?["next"].as_u64()
            }
        };
        let (book, key) = (self.book.clone(), id.to_owned());
        let begun = on_thread(move || {
            book.edit(&key, |entry| match entry.next == Some(due) {
                true => Ok(Some(Entry { next, firing: Some(due), ..entry })),
                // It was changed in the meantime.
                false => Err(Fault::new(Code::ToolFailed, "it is due at another time")),
            })
        });
        let Ok(entry) = begun.await else { return Ok(()) };
        let outcome = act(host, id, due, &entry.action).await;
        self.over(id.to_owned(), due, outcome).await
    }

    async fn over(&self, id: String, due: u64, outcome: String) -> Result<(), Fault> {
        let book = self.book.clone();
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

/// Does what an entry says, and tells what came of it.
async fn act(host: &Arc<dyn Host>, id: &str, due: u64, action: &Action) -> String {
    let asked = match action {
        Action::Text(text) => ask(host, "user.notify", json!({ "text": text })).await,
        Action::Event { topic, payload } => {
            let key = format!("scheduler/{id}@{due}");
            let event = json!({ "topic": topic, "payload": payload, "idempotency": key });
            ask(host, "event.publish", event).await
        }
        Action::Task(task) => ask(host, "agent.task", json!({ "task": task })).await,
    };
    asked.map_or_else(|fault| format!("failed: {}", fault.message), |_| "done".to_owned())
}

pub(crate) async fn ask(host: &Arc<dyn Host>, name: &str, arguments: Value) -> Result<Value, Fault> {
    let asked = Ask::Other { name: name.to_owned(), arguments: Content::new(arguments), timeout: None };
    Ok(host.ask(asked).await?.value().cloned().unwrap_or_default())
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
