//! Answers on tape: [`Recorder`] writes what another model answers, [`Player`] gives it again to the same requests.
//!
//! A tape is a file of JSON lines, each with the digest of what the model saw, an outline of it, and the answer. It holds what was
//! said in the conversation, and no keys. Only what a model sees counts: instructions, context, messages and tools.

#[cfg(test)]
mod cassette_tests;
mod outline;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::ids::ToolName;
use holdfast_contract::message::{AskedCall, Usage};
use holdfast_contract::problem::{Code, Fault, Location, Problem};
use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::wire::Later;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::outline::Outline;
use crate::file::{open_regular, read_text};
use crate::{Delta, Deltas, Model, ModelRequest, ready};

/// A line of a tape.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    request: Digest,
    outline: Outline,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    streamed: Vec<Piece>,
    answer: Answer,
}

/// What was streamed, with neighbours of one kind put together.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Piece {
    Text(String),
    Reasoning(String),
}

/// An answer with everything in place: a tape has no blobs beside it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Answer {
    Returned {
        text: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<Value>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<TapedCall>,
        #[serde(default)]
        usage: Usage,
    },
    Failed {
        fault: Fault,
        retryable: bool,
        #[serde(default)]
        usage: Usage,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TapedCall {
    model_id: Arc<str>,
    tool: ToolName,
    arguments: Value,
}

impl Answer {
    fn of(answer: &Result<ModelReturned, ModelFailed>) -> Self {
        let plain = |content: &Content| content.value().clone();
        match answer {
            Ok(returned) => Self::Returned {
                text: plain(&returned.text),
                reasoning: returned.reasoning.as_ref().map(plain),
                calls: returned
                    .calls
                    .iter()
                    .map(|call| TapedCall {
                        model_id: call.model_id.clone(),
                        tool: call.tool.clone(),
                        arguments: plain(&call.arguments),
                    })
                    .collect(),
                usage: returned.usage,
            },
            Err(ModelFailed { fault, retryable, usage, .. }) => {
                Self::Failed { fault: fault.clone(), retryable: *retryable, usage: *usage }
            }
        }
    }

    fn into_result(self) -> Result<ModelReturned, ModelFailed> {
        match self {
            Self::Returned { text, reasoning, calls, usage } => Ok(ModelReturned {
                text: Content::new(text),
                reasoning: reasoning.map(Content::new),
                calls: calls
                    .into_iter()
                    .map(|TapedCall { model_id, tool, arguments }| AskedCall {
                        model_id,
                        tool,
                        arguments: Content::new(arguments),
                    })
                    .collect(),
                usage,
            }),
            Self::Failed { fault, retryable, usage } => {
                Err(ModelFailed { usage, ..ModelFailed::new(fault, retryable) })
            }
        }
    }
}

/// Writes on a tape what another model answers. An answer that cannot be written is a failure: a tape is never incomplete.
pub struct Recorder {
    model: Arc<dyn Model>,
    tape: Arc<Mutex<File>>,
    path: PathBuf,
}

impl Recorder {
    /// Records this model at the end of this file.
    pub fn new(model: Arc<dyn Model>, path: &Path) -> Result<Self, Problem> {
        let file = open_regular(OpenOptions::new().create(true).append(true), path);
        let file =
            file.map_err(|error| unusable(path, 0, &format!("the tape cannot be written: {error}")))?;
        Ok(Self { model, tape: Arc::new(Mutex::new(file)), path: path.to_owned() })
    }
}

impl Model for Recorder {
    fn price_known(&self) -> bool {
        self.model.price_known()
    }

    fn complete(&self, ask: Box<ModelRequest>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let outline = Outline::of(&ask);
        let streamed: Arc<Mutex<Vec<Piece>>> = Arc::default();
        let recorded = streamed.clone();
        let listening: Deltas = Arc::new(move |delta| {
            record_delta(&mut recorded.lock(), delta);
            deltas(delta);
        });
        let answering = self.model.complete(ask, listening);
        let (tape, path) = (self.tape.clone(), self.path.clone());
        Box::pin(async move {
            let answer = answering.await;
            let streamed = std::mem::take(&mut *streamed.lock());
            let entry = Entry { request: outline.digest(), outline, streamed, answer: Answer::of(&answer) };
            let mut line = serde_json::to_vec(&entry).unwrap_or_default();
            line.push(b'\n');
            match tape.lock().write_all(&line) {
                Ok(()) => answer,
                Err(error) => {
                    Err(failed(unusable(&path, 0, &format!("the tape cannot be written: {error}"))))
                }
            }
        })
    }
}

fn record_delta(streamed: &mut Vec<Piece>, delta: Delta<'_>) {
    match (streamed.last_mut(), delta) {
        (Some(Piece::Text(text)), Delta::Text(more)) => text.push_str(more),
        (Some(Piece::Reasoning(text)), Delta::Reasoning(more)) => text.push_str(more),
        (_, Delta::Text(text)) => streamed.push(Piece::Text(text.to_owned())),
        (_, Delta::Reasoning(text)) => streamed.push(Piece::Reasoning(text.to_owned())),
    }
}

/// Plays a tape. Equal requests get their answers in the order in which they were recorded, and then the last one
/// again.
pub struct Player {
    entries: Vec<Entry>,
    /// How often each request was made.
    made: Mutex<BTreeMap<Digest, usize>>,
}

impl Player {
    /// Reads a tape. Blocks while it is read. A problem names the line and the column, but no content.
    pub fn open(path: &Path) -> Result<Self, Problem> {
        let text = read_text(path)
            .map_err(|error| unusable(path, 0, &format!("the tape cannot be read: {error}")))?;
        let mut entries = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let entry = serde_json::from_str(line);
            entries.push(entry.map_err(|error: serde_json::Error| {
                let what = format!("invalid tape entry, from column {} on", error.column());
                unusable(path, number, &what)
            })?);
        }
        Ok(Self { entries, made: Mutex::default() })
    }

    fn find(&self, outline: &Outline) -> Option<&Entry> {
        let digest = outline.digest();
        let same: Vec<&Entry> = self.entries.iter().filter(|entry| entry.request == digest).collect();
        let mut made = self.made.lock();
        let count = made.entry(digest).or_default();
        let entry = same.get(*count).or(same.last()).copied();
        *count += 1;
        entry
    }
}

impl Model for Player {
    fn complete(&self, ask: Box<ModelRequest>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let outline = Outline::of(&ask);
        let Some(entry) = self.find(&outline) else {
            let what = match outline.nearest(self.entries.iter().map(|entry| &entry.outline)) {
                Some(difference) => {
                    format!("the request is not on the tape; the nearest differs in {difference}")
                }
                None => "the request is not on the tape, which is empty".to_owned(),
            };
            return ready(Err(failed(Problem::new(Code::TapeMissing, what))));
        };
        for piece in &entry.streamed {
            match piece {
                Piece::Text(text) => deltas(Delta::Text(text)),
                Piece::Reasoning(text) => deltas(Delta::Reasoning(text)),
            }
        }
        ready(entry.answer.clone().into_result())
    }
}

fn failed(problem: Problem) -> ModelFailed {
    ModelFailed::new(problem.to_fault(), false)
}

fn unusable(path: &Path, line: u32, what: &str) -> Problem {
    let place = Location { file: path.to_owned(), line, ..Location::default() };
    Problem::new(Code::TapeUnreadable, what).at(place)
}
