//! Asks a model whether it works: one tiny request, and what is to be said about it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_contract::content::Content;
use holdfast_contract::message::{Message, Origin, TurnContext, Usage};
use holdfast_contract::session_frames::ModelFailed;
use parking_lot::Mutex;

use crate::{Delta, Model, ModelRequest};

/// How a model did.
#[derive(Clone, Debug)]
pub struct ModelTestReport {
    /// How long the whole answer took.
    pub latency: Duration,
    /// How long its first piece took, if any came before the end.
    pub first: Option<Duration>,
    /// Whether the answer came in pieces.
    pub streamed: bool,
    /// What it said.
    pub text: String,
    /// What that used.
    pub usage: Usage,
    /// What went wrong, if anything did.
    pub failed: Option<ModelFailed>,
}

/// Makes one tiny request and reports.
pub async fn test(model: &dyn Model) -> ModelTestReport {
    let began = Instant::now();
    let pieces: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let seen = pieces.clone();
    let deltas = Arc::new(move |_: Delta<'_>| {
        seen.lock().push(began.elapsed());
    });
    let answer = model.complete(Box::new(request()), deltas).await;
    let latency = began.elapsed();
    let pieces = pieces.lock();
    let (text, usage, failed) = match answer {
        Ok(returned) => (returned.text.to_text(), returned.usage, None),
        Err(failed) => (String::new(), failed.usage, Some(failed)),
    };
    ModelTestReport {
        latency,
        first: pieces.first().copied(),
        streamed: pieces.len() > 1,
        text,
        usage,
        failed,
    }
}

fn request() -> ModelRequest {
    let turn = TurnContext {
        session: "trial".into(),
        turn: 1,
        agent: "trial".into(),
        origin: Origin { channel: "trial".to_owned(), user: None },
        ..TurnContext::default()
    };
    ModelRequest {
        model: "trial".into(),
        instructions: Content::text("Answer in five words."),
        messages: Arc::new(vec![Message::user("Say that you are ready.")]),
        turn: Arc::new(turn),
        ..ModelRequest::default()
    }
}
