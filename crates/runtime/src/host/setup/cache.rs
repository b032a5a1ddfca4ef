//! What is known of the setup of active extensions, so that an extension is not asked again until something of it changes. Who asks while
//! an extension answers waits for that answer. The extension's own questions and answers are in `setup.rs`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_contract::ids::{ExtensionId, Generation, Millis};
use holdfast_contract::registry::ExtensionRef;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::SetupState;
use crate::runtime::Inner;

/// After how long an extension that was not set up is asked again: what it waits for may have come without the host's knowledge.
const ASK_AGAIN: Millis = Millis(60_000);

/// How long a list of what is not set up waits for extensions that are asked. A later list has what they say.
const LIST_TIMEOUT: Millis = Millis(2_000);

/// What is known of each extension.
#[derive(Default)]
pub(crate) struct SetupCache(Mutex<HashMap<ExtensionId, Arc<Slot>>>);

/// What is known of an extension.
#[derive(Default)]
struct Slot {
    /// Locked while it is asked.
    known: tokio::sync::Mutex<Option<Known>>,
    /// How often something of it changed.
    changes: AtomicU64,
}

struct Known {
    generation: Generation,
    changes: u64,
    at: Millis,
    /// Its state, if it is not set up.
    open: Option<Arc<SetupState>>,
}

impl SetupCache {
    fn slot(&self, id: &ExtensionId) -> Arc<Slot> {
        self.0.lock().entry(id.clone()).or_default().clone()
    }

    /// Has this extension asked again when its state is needed; all of them, if none is named.
    pub(crate) fn changed(&self, only: Option<&ExtensionId>) {
        for (id, slot) in &*self.0.lock() {
            if only.is_none_or(|only| only == id) {
                slot.changes.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Inner {
    /// Whether an active extension says that it is not set up, or lacks what it requires.
    pub(crate) async fn needs_setup(self: &Arc<Self>, id: &ExtensionId) -> bool {
        match self.extensions.active(id) {
            Some(serving) => self.open_setup(&serving).await.is_some(),
            None => false,
        }
    }

    /// The active extensions that are not set up. One that does not answer soon is not among them.
    pub(crate) async fn not_set_up(self: &Arc<Self>) -> Vec<Arc<SetupState>> {
        let mut asked = JoinSet::new();
        for serving in self.extensions.all_active() {
            let inner = self.clone();
            asked.spawn(async move { inner.open_setup(&serving).await });
        }
        let mut open = Vec::new();
        let mut late = self.clock.sleep(LIST_TIMEOUT);
        loop {
            tokio::select! {
                answered = asked.join_next() => match answered {
                    Some(answered) => open.extend(answered.ok().flatten()),
                    None => break,
                },
                () = &mut late => {
                    asked.detach_all();
                    break;
                }
            }
        }
        open.sort_by(|one, two| one.extension.cmp(&two.extension));
        open
    }

    /// The state of the setup of an active generation, if it is not complete.
    async fn open_setup(self: &Arc<Self>, serving: &Arc<ExtensionRef>) -> Option<Arc<SetupState>> {
        let slot = self.setup_cache.slot(&serving.id);
        let mut known = slot.known.lock().await;
        let (changes, now) = (slot.changes.load(Ordering::Relaxed), self.clock.now());
        if let Some(known) = &*known
            && (known.generation, known.changes) == (serving.generation, changes)
            && (known.open.is_none() || now.since(known.at) < ASK_AGAIN)
        {
            return known.open.clone();
        }
        // One whose state cannot be read reports that when it is asked directly.
        let open = self.setup_of(serving).await.ok().filter(|state| !state.complete).map(Arc::new);
        *known = Some(Known { generation: serving.generation, changes, at: now, open: open.clone() });
        open
    }

    /// Something that the setup of this extension may depend on has changed; of every extension, if none is named.
    pub(crate) fn setup_changed(&self, only: Option<&ExtensionId>) {
        self.setup_cache.changed(only);
    }
}
