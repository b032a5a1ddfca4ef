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
pub mod offline;
pub mod provider;
pub mod script;
#[cfg(test)]
mod testing;
pub mod trial;

use std::path::Path;
use std::sync::Arc;

use holdfast_contract::effect::ModelAct;
use holdfast_contract::problem::Problem;
use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::wire::Later;

/// A piece of an answer as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// Of what the model says.
    Text(&'a str),
    /// Of what it considers before it says it.
    Reasoning(&'a str),
}

/// Takes the pieces of an answer as they are written.
pub type Deltas = Arc<dyn Fn(Delta<'_>) + Send + Sync>;

/// A language model.
pub trait Model: Send + Sync {
    /// Answers. The future is dropped when the answer is no longer wanted, and with it the connection.
    fn complete(&self, ask: Box<ModelAct>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>>;
}

/// A model that needs no settings: `offline`, `direct`, `script:<file>` or `cassette:<file>`. None for any other name.
pub fn built_in(name: &str) -> Option<Result<Arc<dyn Model>, Vec<Problem>>> {
    match name {
        "offline" => return Some(Ok(Arc::new(offline::Offline))),
        direct::NAME => return Some(Ok(Arc::new(direct::Direct))),
        _ => {}
    }
    let (kind, file) = name.split_once(':')?;
    match kind {
        "script" => Some(script::Script::read(Path::new(file)).map(|script| Arc::new(script) as _)),
        "cassette" => {
            let player = cassette::Player::open(Path::new(file));
            Some(player.map(|player| Arc::new(player) as _).map_err(|problem| vec![problem]))
        }
        _ => None,
    }
}

fn ready<T: Send + 'static>(value: T) -> Later<T> {
    Box::pin(std::future::ready(value))
}

#[cfg(test)]
mod tests {
    use super::built_in;

    #[test]
    fn models_without_settings_go_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let (script, tape) = (folder.path().join("demo.yaml"), folder.path().join("demo.jsonl"));
        std::fs::write(&script, "- says: hello\n").unwrap();
        std::fs::write(&tape, "").unwrap();
        let found = |name: &str| {
            built_in(name).map(|model| model.map(drop).map_err(|problems| problems[0].code.as_str()))
        };
        assert_eq!(found("offline"), Some(Ok(())));
        assert_eq!(found(&format!("script:{}", script.display())), Some(Ok(())));
        assert_eq!(found(&format!("cassette:{}", tape.display())), Some(Ok(())));
        assert_eq!(found("script:/nowhere"), Some(Err("HF-5010")));
        assert_eq!(found("cassette:/nowhere"), Some(Err("HF-5011")));
        assert_eq!(found("main"), None);
    }
}
