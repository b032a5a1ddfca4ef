//! Watches the folders of a home: a change of an extension or of the policy is reported after a debounce period.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use holdfast_contract::problem::{Code, Problem};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// How long nothing may change before a change is reported: an editor or a compiler writes in several steps.
const DEBOUNCE: Duration = Duration::from_millis(25);
/// The debounce period is extended at most this many times.
const MAX_QUIET_CHECKS: u32 = 40;

enum WatchMessage {
    Changed,
    Stop,
}

/// Watches folders and calls back when something in them has changed and they are quiet again. Ends when it is dropped.
pub struct FolderWatcher {
    sender: Sender<WatchMessage>,
}

impl FolderWatcher {
    /// Begins. What is called back gives the folders that are to be watched from then on; it is called once at the start.
    pub fn begin(changed: impl FnMut() -> Vec<PathBuf> + Send + 'static) -> Result<Self, Problem> {
        let (sender, messages) = channel();
        let events = sender.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading a file does not change it. What could not be told apart may be one.
            if !event.is_ok_and(|event| matches!(event.kind, EventKind::Access(_))) {
                drop(events.send(WatchMessage::Changed));
            }
        });
        let watcher = watcher.map_err(|error| {
            let what = format!("changes cannot be watched for: {error}");
            let help = "Extensions are read at the start only. Raise the system's limit of watched files, and start again.";
            Problem::warning(Code::HomeUnavailable, what).help(help)
        })?;
        let run = move || run(&messages, watcher, changed);
        std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(run)
            .map_err(|error| Problem::new(Code::Internal, format!("no thread could be started: {error}")))?;
        Ok(Self { sender })
    }
}

impl Drop for FolderWatcher {
    fn drop(&mut self) {
        drop(self.sender.send(WatchMessage::Stop));
    }
}

fn run(
    messages: &Receiver<WatchMessage>,
    mut watcher: RecommendedWatcher,
    mut changed: impl FnMut() -> Vec<PathBuf>,
) {
    let mut watched = BTreeSet::new();
    loop {
        // A folder that is watched only from now on may have changed before.
        loop {
            let folders: BTreeSet<PathBuf> = changed().into_iter().collect();
            watched.retain(|folder| folders.contains(folder));
            let before = watched.len();
            for folder in folders {
                // One that went away in the meantime is reported by the folder above it.
                if !watched.contains(&folder) && watcher.watch(&folder, RecursiveMode::NonRecursive).is_ok() {
                    watched.insert(folder);
                }
            }
            if watched.len() == before {
                break;
            }
        }
        let Ok(WatchMessage::Changed) = messages.recv() else { return };
        for _ in 0..MAX_QUIET_CHECKS {
            match messages.recv_timeout(DEBOUNCE) {
                Ok(WatchMessage::Changed) => {}
                Ok(WatchMessage::Stop) => return,
                Err(_) => break,
            }
        }
    }
}
