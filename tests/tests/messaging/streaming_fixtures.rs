//! A channel that shows what is streamed to it, and a model that writes in pieces, for the tests of streaming.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use holdfast_bus::NewEvent;
use holdfast_contract::content::Content;
use holdfast_contract::message::AskedCall;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Channel, NativeExtension, StreamingChannel, now};
use holdfast_model::{Delta, Deltas, Model, ModelRequest};
use serde_json::json;
use tokio::sync::Semaphore;

/// What one function of a screen does instead of its work.
#[derive(Clone, Copy, PartialEq)]
pub enum Does {
    Fails,
    Panics,
    /// It never returns.
    Hangs,
    /// It waits until it is let.
    Waits,
}

/// A channel that keeps what it is told: `ada start`, `ada chunk hello`, `ada status …`, `ada end hello`, `ada whole hello`.
#[derive(Clone)]
pub struct Screen {
    pub seen: Arc<Mutex<Vec<String>>>,
    /// What a function does for one user, or for all.
    pub odd: Option<(&'static str, Option<&'static str>, Does)>,
    pub lets: Arc<Semaphore>,
}

impl Default for Screen {
    fn default() -> Self {
        Self { seen: Arc::default(), odd: None, lets: Arc::new(Semaphore::new(0)) }
    }
}

impl Screen {
    pub fn odd(function: &'static str, user: Option<&'static str>, does: Does) -> Self {
        Self { odd: Some((function, user, does)), ..Self::default() }
    }

    pub fn extension(&self) -> NativeExtension {
        NativeExtension::new("chat", "1.0.0").streaming_channel(self.clone())
    }

    pub fn all(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// What a user was told with one function, in order.
    pub fn told(&self, user: &str, function: &str) -> Vec<String> {
        let begin = format!("{user} {function} ");
        let lines = self.all().into_iter().filter_map(|line| Some(line.strip_prefix(&begin)?.to_owned()));
        lines.collect()
    }

    /// The text that a user was shown before the end.
    pub fn text(&self, user: &str) -> String {
        self.told(user, "chunk").concat()
    }

    fn keep(&self, function: &'static str, user: &str, text: &str) -> Later<Result<(), Fault>> {
        self.seen.lock().unwrap().push(format!("{user} {function} {text}"));
        let odd = self.odd.filter(|(odd, whose, _)| *odd == function && whose.is_none_or(|it| it == user));
        match odd.map(|(.., does)| does) {
            None => now(Ok(())),
            Some(Does::Fails) => now(Err(Fault::new(Code::ToolFailed, "the screen is dark"))),
            Some(Does::Panics) => panic!("the screen is broken"),
            Some(Does::Hangs) => Box::pin(std::future::pending()),
            Some(Does::Waits) => {
                let lets = self.lets.clone();
                Box::pin(async move {
                    lets.acquire().await.unwrap().forget();
                    Ok(())
                })
            }
        }
    }
}

impl Channel for Screen {
    fn send_to_user(
        &self,
        user: String,
        text: String,
        delivery: Content,
        _: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>> {
        let repeat = if delivery.value()["repeat"] == json!(true) { " (repeat)" } else { "" };
        self.keep("whole", &user, &format!("{text}{repeat}"))
    }
}

impl StreamingChannel for Screen {
    fn stream_start(&self, user: String, id: String, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        assert!(id.starts_with("bus."), "{id}");
        self.keep("start", &user, "")
    }

    fn stream_chunk(
        &self,
        user: String,
        _: String,
        text: String,
        _: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>> {
        self.keep("chunk", &user, &text)
    }

    fn stream_status(
        &self,
        user: String,
        _: String,
        status: String,
        _: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>> {
        self.keep("status", &user, &status)
    }

    fn stream_end(
        &self,
        user: String,
        _: String,
        text: String,
        delivery: Content,
        _: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>> {
        assert!(delivery.value()["id"].is_string());
        self.keep("end", &user, &text)
    }
}

/// What a user says on the screen's channel.
pub fn message(user: &str, text: &str) -> NewEvent {
    NewEvent::new("user.message", json!({ "text": text, "user_id": user, "channel_id": "chat" }))
}

/// A model that writes texts in pieces, one text for each request, and yields after each piece.
#[derive(Clone, Default)]
pub struct Writer {
    texts: Arc<Mutex<VecDeque<Text>>>,
    /// How many pieces it has written.
    pub written: Arc<Mutex<usize>>,
}

#[derive(Clone, Default)]
struct Text {
    pieces: Vec<String>,
    breaks_off: bool,
    returned: Option<String>,
    considered: Vec<String>,
    calls: Option<&'static str>,
}

impl Writer {
    pub fn new() -> Self {
        Self::default()
    }

    /// It writes these pieces, which are its answer.
    pub fn writes(self, pieces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let pieces = pieces.into_iter().map(Into::into).collect();
        self.texts.lock().unwrap().push_back(Text { pieces, ..Text::default() });
        self
    }

    /// The last text is never finished: the connection is lost.
    pub fn breaks_off(self) -> Self {
        self.texts.lock().unwrap().back_mut().unwrap().breaks_off = true;
        self
    }

    /// What is considered before the last text is written.
    pub fn considers(self, pieces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let pieces = pieces.into_iter().map(Into::into).collect();
        self.texts.lock().unwrap().back_mut().unwrap().considered = pieces;
        self
    }

    /// A tool is called with the last text.
    pub fn calls(self, tool: &'static str) -> Self {
        self.texts.lock().unwrap().back_mut().unwrap().calls = Some(tool);
        self
    }

    /// What is returned with the last text is not what was written.
    pub fn returns(self, text: &str) -> Self {
        self.texts.lock().unwrap().back_mut().unwrap().returned = Some(text.to_owned());
        self
    }
}

impl Model for Writer {
    fn complete(&self, _: Box<ModelRequest>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let text = self.texts.lock().unwrap().pop_front();
        let Text { pieces, breaks_off, returned, considered, calls } =
            text.expect("one text for each request");
        let written = self.written.clone();
        Box::pin(async move {
            for piece in &considered {
                deltas(Delta::Reasoning(piece));
                tokio::task::yield_now().await;
            }
            for piece in &pieces {
                deltas(Delta::Text(piece));
                *written.lock().unwrap() += 1;
                tokio::task::yield_now().await;
            }
            let usage = Default::default();
            if breaks_off {
                let fault = Fault::new(Code::ModelFailed, "the connection was lost");
                return Err(ModelFailed { usage, ..ModelFailed::new(fault, false) });
            }
            let text = Content::text(returned.unwrap_or_else(|| pieces.concat()));
            let asked = |tool: &str| AskedCall {
                model_id: "1".into(),
                tool: tool.into(),
                arguments: Content::new(json!({})),
            };
            Ok(ModelReturned { text, reasoning: None, calls: calls.map(asked).into_iter().collect(), usage })
        })
    }
}
