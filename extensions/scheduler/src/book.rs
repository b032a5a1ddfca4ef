//! The book of entries: one file, replaced as a whole, so that whenever the machine stops the old book or the new one is there.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_contract::problem::{Code, Fault};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most entries that are kept.
pub(crate) const MOST: usize = 1_000;

/// Something that is done later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// When it comes again; none for what comes once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// What is done.
    pub action: Action,
    /// When it is next due, in milliseconds since 1970; none when it is over.
    pub next: Option<u64>,
    /// The due time whose firing was begun and not seen to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firing: Option<u64>,
    /// The last due time that was fired, and what came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fired: Option<(u64, String)>,
}

/// What is done when an entry is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Action {
    /// The user is told.
    Text(String),
    /// An event is published.
    Event { topic: String, payload: Value },
    /// The agent is given a task.
    Task(String),
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pages {
    /// The number of the last entry that was made.
    last: u64,
    entries: BTreeMap<String, Entry>,
}

/// The book. Its methods wait for the disk.
pub(crate) struct Book {
    folder: PathBuf,
    pages: Mutex<Option<Pages>>,
}

impl Book {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, pages: Mutex::new(None) }
    }

    /// Looks at the entries.
    pub(crate) fn entries(&self) -> Result<BTreeMap<String, Entry>, Fault> {
        Ok(self.open()?.1.entries)
    }

    /// Adds an entry and gives its id.
    pub(crate) fn add(&self, entry: Entry) -> Result<String, Fault> {
        self.change(|pages| {
            if pages.entries.len() >= MOST {
                let what = format!("there are {MOST} schedules already; cancel some");
                return Err(Fault::new(Code::ToolFailed, what));
            }
            pages.last += 1;
            let id = format!("s{}", pages.last);
            pages.entries.insert(id.clone(), entry);
            Ok(id)
        })
    }

    /// Changes an entry; none removes it. Gives the entry as it was.
    pub(crate) fn edit(
        &self,
        id: &str,
        edit: impl FnOnce(Entry) -> Result<Option<Entry>, Fault>,
    ) -> Result<Entry, Fault> {
        self.change(|pages| {
            let unknown = || Fault::new(Code::ToolFailed, format!("there is no schedule `{id}`"));
            let before = pages.entries.get(id).cloned().ok_or_else(unknown)?;
            match edit(before.clone())? {
                Some(after) => pages.entries.insert(id.to_owned(), after),
                None => pages.entries.remove(id),
            };
            Ok(before)
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut Pages) -> Result<T, Fault>) -> Result<T, Fault> {
        let (mut kept, mut pages) = self.open()?;
        let done = change(&mut pages)?;
        self.write(&pages).map_err(|error| self.failed("written", &error.to_string()))?;
        *kept = Some(pages);
        Ok(done)
    }

    fn open(&self) -> Result<(MutexGuard<'_, Option<Pages>>, Pages), Fault> {
        let mut kept = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = match &*kept {
            Some(pages) => pages.clone(),
            None => match fs::read(self.folder.join("schedules.json")) {
                Ok(bytes) => {
                    serde_json::from_slice(&bytes).map_err(|error| self.failed("read", &error.to_string()))?
                }
                Err(error) if error.kind() == ErrorKind::NotFound => Pages::default(),
                Err(error) => return Err(self.failed("read", &error.to_string())),
            },
        };
        *kept = Some(pages.clone());
        Ok((kept, pages))
    }

    fn write(&self, pages: &Pages) -> std::io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let file = self.folder.join("schedules.json");
        holdfast_atomic_file::replace(&file, &serde_json::to_vec_pretty(pages)?, 0o600)
    }

    fn failed(&self, doing: &str, error: &str) -> Fault {
        let place = self.folder.join("schedules.json");
        Fault::new(Code::ToolFailed, format!("{} cannot be {doing}: {error}", place.display()))
    }
}
