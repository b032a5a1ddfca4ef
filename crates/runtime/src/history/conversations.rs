//! Conversations as extensions see them: the sessions of the log, with titles and projects, which are kept in a file of the home. A
//! thread's id is its session's id. A thread may be created before anything is said in it; its session begins with the first message.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::host_call::arguments::{
    ProjectUpdateArguments, ThreadListArguments, ThreadUpdateArguments,
};
use holdfast_contract::ids::{ExtensionId, Millis, Seq, StreamId};
use holdfast_contract::problem::{Code, Problem};
use holdfast_store::{Store, StreamInfo};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::recorded_start;

/// The file, in the home.
pub(crate) const FILE: &str = "conversations.json";
/// What the file may have: ten thousand threads and projects have far less.
const MAX_BYTES: u64 = 1 << 30;
/// Threads that are listed, the latest ones.
const MAX_LISTED: usize = 1_000;
/// Threads and projects that are kept.
const MAX_KEPT: usize = 10_000;
/// The longest title, and the longest project.
const MAX_TITLE_CHARS: usize = 400;
const MAX_PROJECT_BYTES: usize = 64 << 10;
/// Messages of a history, the latest ones.
const MAX_MESSAGES: usize = 2_000;
/// What a project may say of itself.
const PROJECT_FIELDS: [&str; 7] =
    ["name", "description", "icon", "instructions", "agent_config", "files", "links"];

/// A conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Thread {
    pub id: String,
    pub channel_id: String,
    #[serde(flatten)]
    pub kept: KeptThread,
    pub created_at: u64,
    pub last_active_at: u64,
}

/// What the log does not say of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptThread {
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub project_id: Option<String>,
    #[serde(default)]
    pub is_archived: bool,
}

/// A conversation in the file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    kept: KeptThread,
    /// The channel that created it, and when, for the time before its session begins.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    channel: String,
    #[serde(default, skip_serializing_if = "is_unknown")]
    created_at: u64,
}

/// The session of a conversation says when it began.
fn is_unknown(created_at: &u64) -> bool {
    *created_at == 0
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Kept {
    #[serde(default)]
    threads: BTreeMap<String, Entry>,
    #[serde(default)]
    projects: BTreeMap<String, Map<String, Value>>,
}

/// The titles and projects of conversations. It blocks, so tasks use it on a blocking thread.
#[derive(Default)]
pub(crate) struct Conversations {
    path: Option<PathBuf>,
    kept: Mutex<Option<Kept>>,
}

impl Conversations {
    /// Those of a home. The file is read when it is needed.
    pub fn of(home: Option<&Path>) -> Self {
        Self { path: home.map(|home| home.join(FILE)), kept: Mutex::default() }
    }

    /// The conversations, the latest first.
    pub fn list(&self, store: &Store, asked: &ThreadListArguments) -> Result<Vec<Thread>, Problem> {
        let mut entries = self.read(|kept| kept.threads.clone())?;
        let mut streams = store.streams()?;
        streams.retain(|info| info.id.is_session());
        if let Some(thread) = &asked.thread {
            streams.retain(|info| info.id.as_str() == thread);
            entries.retain(|id, _| id == thread);
        }
        let mut threads = Vec::new();
        for info in streams {
            let entry = entries.remove(info.id.as_str()).unwrap_or_default();
            threads.extend(of_session(store, info, entry)?);
        }
        threads.extend(entries.into_iter().filter(|(_, entry)| !entry.channel.is_empty()).map(
            |(id, entry)| {
                let Entry { kept, channel, created_at } = entry;
                Thread { id, channel_id: channel, kept, created_at, last_active_at: created_at }
            },
        ));
        let named = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|it| it == is);
        threads.retain(|thread| {
            (asked.archived || !thread.kept.is_archived)
                && named(&asked.channel, &thread.channel_id)
                && (asked.project.is_none() || asked.project == thread.kept.project_id)
        });
        threads.sort_by(|one, two| (two.last_active_at, &two.id).cmp(&(one.last_active_at, &one.id)));
        threads.truncate(MAX_LISTED);
        Ok(threads)
    }

    /// Creates or changes a conversation. None if it does not exist and is not to be created.
    pub fn update(
        &self,
        store: &Store,
        asked: ThreadUpdateArguments,
        now: Millis,
    ) -> Result<Option<Thread>, Problem> {
        let ThreadUpdateArguments { thread, channel, title, project, archived } = asked;
        let one = ThreadListArguments { thread: Some(thread.clone()), archived: true, ..Default::default() };
        if self.list(store, &one)?.is_empty() {
            if channel.is_none() {
                return Ok(None);
            }
            StreamId::from(thread.as_str()).check_session()?;
        }
        self.change(|kept| {
            if let Some(project) = project.iter().flatten().find(|it| !kept.projects.contains_key(*it)) {
                return Err(refused(format!("there is no project `{project}`")));
            }
            let is_new = !kept.threads.contains_key(&thread);
            if is_new && kept.threads.len() >= MAX_KEPT {
                return Err(refused(format!("at most {MAX_KEPT} conversations have a title or a project")));
            }
            let entry = kept.threads.entry(thread.clone()).or_default();
            if let (true, Some(channel)) = (is_new, channel) {
                (entry.channel, entry.created_at) = (channel, seconds(now));
            }
            if let Some(title) = title {
                entry.kept.title = title.map(|title| title.chars().take(MAX_TITLE_CHARS).collect());
            }
            if let Some(project) = project {
                entry.kept.project_id = project;
            }
            entry.kept.is_archived = archived.unwrap_or(entry.kept.is_archived);
            Ok(())
        })?;
        Ok(self.list(store, &one)?.pop())
    }

    /// The projects, the one that was changed last first.
    pub fn projects(&self) -> Result<Vec<Value>, Problem> {
        let mut projects: Vec<Map<String, Value>> =
            self.read(|kept| kept.projects.values().cloned().collect())?;
        projects.sort_by_key(|it| std::cmp::Reverse(it.get("updated_at").and_then(Value::as_u64)));
        Ok(projects.into_iter().map(Value::Object).collect())
    }

    /// Creates or changes a project. None if it does not exist.
    pub fn update_project(
        &self,
        asked: ProjectUpdateArguments,
        new_id: String,
        now: Millis,
    ) -> Result<Option<Value>, Problem> {
        let ProjectUpdateArguments { project, fields } = asked;
        if let Some(unknown) = fields.keys().find(|it| !PROJECT_FIELDS.contains(&it.as_str())) {
            return Err(refused(format!("a project has no field `{unknown}`")));
        }
        self.change(|kept| {
            if project.as_ref().is_some_and(|id| !kept.projects.contains_key(id)) {
                return Ok(None);
            }
            if project.is_none() && kept.projects.len() >= MAX_KEPT {
                return Err(refused(format!("there may be {MAX_KEPT} projects")));
            }
            let id = project.unwrap_or(new_id);
            let made = || {
                let mut made = Map::new();
                made.insert("id".to_owned(), id.as_str().into());
                made.insert("created_at".to_owned(), seconds(now).into());
                made
            };
            let mut changed = kept.projects.get(&id).cloned().unwrap_or_else(made);
            changed.extend(fields);
            changed.insert("updated_at".to_owned(), seconds(now).into());
            let project = Value::Object(changed.clone());
            if project.to_string().len() > MAX_PROJECT_BYTES {
                return Err(refused(format!("a project may have {MAX_PROJECT_BYTES} bytes")));
            }
            kept.projects.insert(id, changed);
            Ok(Some(project))
        })
    }

    /// Removes a project, and its conversations from it. Says whether there was one.
    pub fn remove_project(&self, project: &str) -> Result<bool, Problem> {
        self.change(|kept| {
            for entry in kept.threads.values_mut() {
                entry.kept.project_id.take_if(|it| it == project);
            }
            Ok(kept.projects.remove(project).is_some())
        })
    }

    fn read<T>(&self, work: impl FnOnce(&Kept) -> T) -> Result<T, Problem> {
        let mut kept = self.kept.lock();
        Ok(work(self.loaded(&mut kept)?))
    }

    /// Changes what is kept, on disk first.
    fn change<T>(&self, work: impl FnOnce(&mut Kept) -> Result<T, Problem>) -> Result<T, Problem> {
        let mut kept = self.kept.lock();
        let mut changed = self.loaded(&mut kept)?.clone();
        let done = work(&mut changed)?;
        if let Some(path) = &self.path {
            let failed = |error: String| refused(format!("{} cannot be written: {error}", path.display()));
            let json = serde_json::to_vec_pretty(&changed).map_err(|error| failed(error.to_string()))?;
            holdfast_atomic_file::replace(path, &json, 0o600).map_err(|error| failed(error.to_string()))?;
        }
        *kept = Some(changed);
        Ok(done)
    }

    fn loaded<'a>(&self, kept: &'a mut Option<Kept>) -> Result<&'a Kept, Problem> {
        if kept.is_none() {
            *kept = Some(self.path.as_deref().map_or_else(|| Ok(Kept::default()), load)?);
        }
        kept.as_ref().ok_or_else(|| Problem::new(Code::Internal, "the conversations are not loaded"))
    }
}

fn load(path: &Path) -> Result<Kept, Problem> {
    let damaged = |error: String| {
        let what = format!("{} cannot be read: {error}", path.display());
        Problem::new(Code::HomeUnavailable, what)
            .help("Repair it, or remove it: titles and projects are lost then.")
    };
    match holdfast_untrusted_files::read(path, MAX_BYTES) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string())),
        Err(error) if error.is_not_found() => Ok(Kept::default()),
        Err(error) => Err(damaged(error.to_string())),
    }
}

/// The conversation that a session is; none for the session of an agent that another one asked.
fn of_session(store: &Store, info: StreamInfo, entry: Entry) -> Result<Option<Thread>, Problem> {
    let body = recorded_start(store, &info.id)?.unwrap_or_default();
    if !body["parent"].is_null() {
        return Ok(None);
    }
    let channel = body["origin"]["channel"].as_str().unwrap_or(&entry.channel).to_owned();
    let begun = info.first_at.map_or(entry.created_at, seconds);
    let created_at = if entry.created_at == 0 { begun } else { entry.created_at };
    Ok(Some(Thread {
        id: info.id.to_string(),
        channel_id: channel,
        kept: entry.kept,
        created_at,
        last_active_at: info.last_at.map_or(created_at, seconds),
    }))
}

/// The channel of a session that has begun.
pub(crate) fn channel_of(store: &Store, session: &StreamId) -> Result<Option<String>, Problem> {
    let body = recorded_start(store, session)?;
    Ok(body.map(|body| body["origin"]["channel"].as_str().unwrap_or_default().to_owned()))
}

/// What the user and the agent have said, in order. None if there is no such session.
pub(crate) fn history(store: &Store, session: &StreamId) -> Result<Option<Vec<Value>>, Problem> {
    if store.head(session)?.is_none() {
        return Ok(None);
    }
    let mut said = std::collections::VecDeque::new();
    store.for_each_frame(session, Seq(0), |frame| {
        let (role, at) = match frame.envelope.kind {
            FrameKind::InputReceived => ("user", frame.envelope.at),
            FrameKind::TurnEnded => ("assistant", frame.envelope.at),
            _ => return Ok(ControlFlow::Continue(())),
        };
        let erased = frame.body.is_none();
        let text = match store.body(&frame) {
            Ok(Body::InputReceived(input)) => Some(input.text.to_text()),
            Ok(Body::TurnEnded(ended)) => ended.answer.map(|answer| answer.to_text()),
            Ok(_) => None,
            Err(_) if erased => None,
            Err(problem) => return Err(problem),
        };
        if let Some(content) = text {
            said.push_back(json!({ "role": role, "content": content, "created_at": seconds(at) }));
        }
        if said.len() > MAX_MESSAGES {
            said.pop_front();
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(Some(said.into()))
}

/// Refuses the session that a message names as its thread, unless it is one of the message's own channel. A new one may not have a
/// name that the session of a user or of another channel would have.
pub(crate) fn check_thread(
    store: &Store,
    thread: &StreamId,
    channel: &ExtensionId,
    taken: impl FnOnce(&str) -> bool,
) -> Result<(), Problem> {
    thread.check_session()?;
    let what = match channel_of(store, thread)? {
        Some(other) if other == channel.as_str() => return Ok(()),
        Some(other) => format!("the conversation `{thread}` is one of `{other}`, not of `{channel}`"),
        None if thread.as_str().contains('.') || taken(thread.as_str()) => {
            format!("`{thread}` is not a valid name for a new conversation of `{channel}`")
        }
        None => return Ok(()),
    };
    Err(Problem::new(Code::EventRefused, what))
}

fn refused(what: String) -> Problem {
    Problem::new(Code::ToolArguments, what)
}

fn seconds(at: Millis) -> u64 {
    at.0 / 1_000
}
