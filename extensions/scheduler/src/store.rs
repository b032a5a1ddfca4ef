//! The schedules on disk: one file, replaced atomically, so that a crash leaves the old content or the new one.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use holdfast_contract::problem::{Code, Fault};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The largest file of schedules that is read.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Entries in the file.
pub(crate) const MAX_ENTRIES: usize = 1_000;

/// A schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// Its recurrence; `None` for a one-off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// What is done.
    pub action: Action,
    /// Where it was asked for, so that a text is shown there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_in: Option<AskedIn>,
    /// The next due time, in milliseconds since 1970; `None` when there is none left.
    pub next: Option<u64>,
    /// The due time whose firing has started and not completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firing: Option<u64>,
    /// The last due time that was fired, and the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fired: Option<(u64, String)>,
}

/// Where a schedule was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskedIn {
    pub session: String,
    /// The channel and its user, where it is one that knows users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<(String, String)>,
}

/// What to do when an entry is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Action {
    /// Notify the user.
    Text(String),
    /// Publish an event.
    Event { topic: String, payload: Value },
    /// Give the agent a task.
    Task(String),
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Schedules {
    /// The number of the newest entry.
    last: u64,
    entries: BTreeMap<String, Entry>,
}

/// The schedules on disk. Methods block on I/O.
pub(crate) struct ScheduleStore {
    folder: PathBuf,
    schedules: Mutex<Option<Schedules>>,
}

impl ScheduleStore {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, schedules: Mutex::new(None) }
    }

    /// All entries.
    pub(crate) fn entries(&self) -> Result<BTreeMap<String, Entry>, Fault> {
        Ok(self.open()?.1.entries)
    }

    /// Adds an entry and returns its id.
    pub(crate) fn add(&self, entry: Entry) -> Result<String, Fault> {
        self.change(|schedules| {
            if schedules.entries.len() >= MAX_ENTRIES {
                let what = format!("there are already {MAX_ENTRIES} schedules; cancel some");
                return Err(Fault::new(Code::ToolFailed, what));
            }
            schedules.last += 1;
            let id = format!("s{}", schedules.last);
            schedules.entries.insert(id.clone(), entry);
            Ok(id)
        })
    }

    /// Changes an entry; `None` removes it. Returns the previous entry.
    pub(crate) fn edit(
        &self,
        id: &str,
        edit: impl FnOnce(Entry) -> Result<Option<Entry>, Fault>,
    ) -> Result<Entry, Fault> {
        self.change(|schedules| {
            let unknown = || Fault::new(Code::ToolFailed, format!("there is no schedule `{id}`"));
            let before = schedules.entries.get(id).cloned().ok_or_else(unknown)?;
            match edit(before.clone())? {
                Some(after) => schedules.entries.insert(id.to_owned(), after),
                None => schedules.entries.remove(id),
            };
            Ok(before)
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut Schedules) -> Result<T, Fault>) -> Result<T, Fault> {
        let (mut kept, mut schedules) = self.open()?;
        let done = change(&mut schedules)?;
        let text = serde_json::to_vec_pretty(&schedules);
        let text = text.map_err(|error| self.failed("written", &error.to_string()))?;
        // A larger file could not be read again.
        if text.len() as u64 > MAX_FILE_BYTES {
            let what = format!("all schedules together have more than {MAX_FILE_BYTES} bytes; cancel some");
            return Err(Fault::new(Code::ToolFailed, what));
        }
        self.write(&text).map_err(|error| self.failed("written", &error.to_string()))?;
        *kept = Some(schedules);
        Ok(done)
    }

    fn open(&self) -> Result<(MutexGuard<'_, Option<Schedules>>, Schedules), Fault> {
        let mut kept = self.schedules.lock();
        let schedules = match &*kept {
            Some(schedules) => schedules.clone(),
            None => {
                match holdfast_untrusted_files::read(&self.folder.join("schedules.json"), MAX_FILE_BYTES) {
                    Ok(bytes) => serde_json::from_slice(&bytes)
                        .map_err(|error| self.failed("read", &error.to_string()))?,
                    Err(error) if error.is_not_found() => Schedules::default(),
                    Err(error) => return Err(self.failed("read", &error.to_string())),
                }
            }
        };
        *kept = Some(schedules.clone());
        Ok((kept, schedules))
    }

    fn write(&self, text: &[u8]) -> std::io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let file = self.folder.join("schedules.json");
        holdfast_atomic_file::replace(&file, text, 0o600)
    }

    fn failed(&self, doing: &str, error: &str) -> Fault {
        let place = self.folder.join("schedules.json");
        Fault::new(Code::ToolFailed, format!("{} cannot be {doing}: {error}", place.display()))
    }
}
