//! Language models behind one trait.
//!
//! A model takes a request as the kernel decided it, streams text while it writes, and answers once. What it streams is
//! provisional: only the answer becomes a frame. Retries, fallbacks and budgets are the kernel's, not the model's. [`script`] is
//! a model that plays answers from a script: for tests, demonstrations and documentation.

pub mod script;

use std::sync::Arc;

use holdfast_contract::effect::ModelAct;
use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::wire::Later;

/// Takes pieces of text as they are written.
pub type Deltas = Arc<dyn Fn(&str) + Send + Sync>;

/// A language model.
pub trait Model: Send + Sync {
    /// Answers. The future is dropped when the answer is no longer wanted, and with it the connection.
    fn complete(&self, ask: Box<ModelAct>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>>;
}
