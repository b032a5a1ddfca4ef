//! Language models behind one trait.
//!
//! A model takes a request as the kernel decided it, streams text while it writes, and answers once. What it streams is
//! provisional: only the answer becomes a frame. Retries, fallbacks and budgets are the kernel's, not the model's.
//!
//! [`provider`] speaks to models over a network. [`offline`] needs none and is there when nothing is configured. [`script`] plays
//! answers from a script and [`cassette`] plays what was recorded: for tests, demonstrations and documentation. [`direct`] calls
//! the tool that it is told to. [`detect`] finds
//! what a machine has to offer, and [`trial`] asks a model whether it works.

pub mod cassette;
pub mod detect;
pub mod direct;
mod file;
pub mod offline;
pub mod provider;
pub mod script;
#[cfg(test)]
mod testing;
pub mod trial;

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::ids::{ModelName, Seq, ToolName};
use holdfast_contract::message::{Message, TurnView};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::tool::ToolSpec;
use holdfast_contract::wire::Later;
use serde_json::{Map, Value};

/// What a model is asked: the conversation, and the tools that it may call.
#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    /// The frame that decided it: `model.requested`, or that of a compaction.
    pub decided_by: Seq,
    /// The model.
    pub model: ModelName,
    /// The agent's instructions.
    pub instructions: Content,
    /// What context providers add to them, in order.
    pub context: Arc<Vec<Content>>,
    /// The conversation.
    pub messages: Arc<Vec<Message>>,
    /// The tools that it is shown, by name.
    pub tools: Vec<Arc<ToolSpec>>,
    /// The names of all tools of the turn, shown or not, in order. What a tool is called on the wire depends on all of them, so that it
    /// does not change from one request to the next.
    pub tool_names: Vec<ToolName>,
    /// Parameters of the agent that asks, such as `temperature`.
    pub parameters: Map<String, Value>,
    /// The turn that it belongs to.
    pub turn: TurnView,
}

/// A piece of an answer as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// Text of the answer.
    Text(&'a str),
    /// Reasoning before the answer.
    Reasoning(&'a str),
}

/// Takes the pieces of an answer as they are written.
pub type Deltas = Arc<dyn Fn(Delta<'_>) + Send + Sync>;

/// A language model.
pub trait Model: Send + Sync {
    /// Answers. The future is dropped when the answer is no longer wanted, and with it the connection.
    fn complete(&self, ask: Box<ModelRequest>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>>;

    /// Whether what it uses is reported with its cost. Where it is not, a limit on money cannot hold.
    fn price_known(&self) -> bool {
        true
    }
}

/// A model that needs no settings and no file: `offline` or `direct`. None for any other name.
pub fn built_in(name: &str) -> Option<Arc<dyn Model>> {
    match name {
        "offline" => Some(Arc::new(offline::Offline)),
        direct::NAME => Some(Arc::new(direct::Direct)),
        _ => None,
    }
}

/// A name that means a file: `script:<file>` or `cassette:<file>`. The name decides which file the host opens.
pub fn names_file(name: &str) -> bool {
    FileModel::of(name).is_some()
}

/// The model that the file of such a name holds, read on a thread that may block. None for any other name.
pub async fn open_file(name: &str) -> Option<Result<Arc<dyn Model>, Problem>> {
    let file = FileModel::of(name)?;
    let opened = tokio::task::spawn_blocking(move || file.open()).await;
    Some(opened.unwrap_or_else(|error| {
        Err(Problem::new(Code::Internal, format!("the file of `{name}` could not be read: {error}")))
    }))
}

/// A model that is played from a file.
enum FileModel {
    Script(PathBuf),
    Cassette(PathBuf),
}

impl FileModel {
    fn of(name: &str) -> Option<Self> {
        match name.split_once(':')? {
            ("script", file) => Some(Self::Script(file.into())),
            ("cassette", file) => Some(Self::Cassette(file.into())),
            _ => None,
        }
    }

    fn open(&self) -> Result<Arc<dyn Model>, Problem> {
        match self {
            Self::Script(file) => match script::Script::read(file) {
                Ok(script) => Ok(Arc::new(script)),
                Err(problems) => Err(Problem::all(problems).unwrap_or_else(|| {
                    Problem::new(Code::Internal, "a script was rejected without a reason")
                })),
            },
            Self::Cassette(file) => Ok(Arc::new(cassette::Player::open(file)?)),
        }
    }
}

fn ready<T: Send + 'static>(value: T) -> Later<T> {
    Box::pin(std::future::ready(value))
}

#[cfg(test)]
mod tests {
    use super::{built_in, names_file, open_file};

    #[tokio::test]
    async fn models_without_settings_go_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let (script, tape) = (folder.path().join("demo.yaml"), folder.path().join("demo.jsonl"));
        std::fs::write(&script, "- says: hello\n").unwrap();
        std::fs::write(&tape, "").unwrap();
        assert!(built_in("offline").is_some() && built_in("direct").is_some());
        let opened = async |name: &str| {
            assert!(built_in(name).is_none(), "{name}: no file is opened for a plain name");
            let opened = open_file(name).await;
            assert_eq!(opened.is_some(), names_file(name), "{name}");
            opened.map(|model| model.map(drop).map_err(|problem| problem.code.as_str()))
        };
        assert_eq!(opened(&format!("script:{}", script.display())).await, Some(Ok(())));
        assert_eq!(opened(&format!("cassette:{}", tape.display())).await, Some(Ok(())));
        assert_eq!(opened("script:/nowhere").await, Some(Err("HF-5010")));
        assert_eq!(opened("cassette:/nowhere").await, Some(Err("HF-5011")));
        assert_eq!(opened("script:/dev/zero").await, Some(Err("HF-5010")));
        assert_eq!(opened("cassette:/dev/zero").await, Some(Err("HF-5011")));
        assert_eq!(opened("main").await, None);
    }
}
