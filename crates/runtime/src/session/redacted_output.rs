//! A model's output on its way to surfaces and channels: secrets are redacted, also where a value arrives in several deltas, and the
//! sanitizers of answers are asked (`preview.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::wire::Later;
use holdfast_model::{Delta, Model, ModelRequest};
use holdfast_secrets::RedactedStream;
use parking_lot::Mutex;

use super::preview::{Preview, PreviewText};
use crate::host::secrets::Secrets;
use crate::messaging::OutputStream;
use crate::parts::{OutputDelta, OutputKind, SessionEvent};
use crate::runtime::Inner;

/// What a model's answer comes to.
pub(super) type ModelOutcome = Result<ModelReturned, ModelFailed>;

/// A model's output on its way to surfaces and channels.
pub(super) struct RedactedOutput {
    inner: Arc<Inner>,
    session: StreamId,
    /// The frame with which the model was asked.
    after: Seq,
    /// Bytes of the answer that were shown.
    shown: AtomicU64,
    output: Option<Arc<OutputStream>>,
    /// The text and what is considered, each as far as it is held back; none where nothing is secret.
    streams: Option<Mutex<[Option<RedactedStream>; 2]>>,
    /// Whether nothing of it is shown.
    hidden: bool,
    /// The text and the reasoning on their way through the sanitizers of answers, where there are any.
    sanitizing: Option<[PreviewText; 2]>,
}

impl RedactedOutput {
    pub(super) fn new(
        inner: &Arc<Inner>,
        session: &StreamId,
        after: Seq,
        output: Option<Arc<OutputStream>>,
        preview: &Preview,
    ) -> Arc<Self> {
        let stream = |secrets: &Arc<Secrets>| Some(secrets.redacted_stream());
        let streams = inner.home.secrets().map(|secrets| Mutex::new([stream(secrets), stream(secrets)]));
        let (inner, session, shown) = (inner.clone(), session.clone(), AtomicU64::default());
        let hidden = matches!(preview, Preview::Hidden);
        let sanitizing = PreviewText::of(preview).zip(PreviewText::of(preview)).map(<[_; 2]>::from);
        Arc::new(Self { inner, session, after, shown, output, streams, hidden, sanitizing })
    }

    /// Waits for a model's answer while what it writes goes through the sanitizers. No answer is one that a guardrail stopped.
    pub(super) async fn sanitizing(
        &self,
        answer: impl Future<Output = Option<ModelOutcome>>,
    ) -> Option<ModelOutcome> {
        let Some([text, reasoning]) = &self.sanitizing else { return answer.await };
        let read = async {
            let answer = answer.await;
            // A text that is not an answer is judged by nobody else; an answer is shown when the turn has judged it.
            let shows = match &answer {
                Some(Ok(returned)) => text.streams() || !returned.calls.is_empty(),
                _ => false,
            };
            text.end(shows);
            reasoning.end(shows && text.streams());
            answer
        };
        let shown = text.run(|text| self.show_text(text));
        let considered = reasoning.run(|text| self.show(OutputKind::Reasoning, text.to_owned()));
        tokio::join!(read, shown, considered).0
    }

    /// Asks a model and shows what it writes.
    pub(super) async fn follow(
        self: Arc<Self>,
        model: Arc<dyn Model>,
        request: Box<ModelRequest>,
    ) -> ModelOutcome {
        let written = self.clone();
        let deltas = Arc::new(move |delta: Delta<'_>| match delta {
            Delta::Text(text) => written.tell(&written.without_secrets(0, text)),
            Delta::Reasoning(text) => written.tell_reasoning(written.without_secrets(1, text)),
        });
        let answer = self.paced(model.complete(request, deltas)).await;
        self.tell(&self.held_back(0));
        self.tell_reasoning(self.held_back(1));
        answer
    }

    /// Reads a model no faster than the channel takes what it writes, where there is one.
    pub(super) async fn paced(&self, answer: Later<ModelOutcome>) -> ModelOutcome {
        match &self.output {
            None => answer.await,
            Some(output) => output.paced(answer).await,
        }
    }

    /// A piece of the text (0) or of what is considered (1), as far as it can be shown.
    pub(super) fn without_secrets(&self, place: usize, piece: &str) -> String {
        let Some(streams) = &self.streams else { return piece.to_owned() };
        let mut streams = streams.lock();
        streams[place].as_mut().map(|stream| stream.push(piece)).unwrap_or_default()
    }

    /// What was held back: no more comes.
    pub(super) fn held_back(&self, place: usize) -> String {
        let Some(streams) = &self.streams else { return String::new() };
        let mut streams = streams.lock();
        streams[place].take().map(RedactedStream::finish).unwrap_or_default()
    }

    /// Shows a piece of the text.
    pub(super) fn tell(&self, text: &str) {
        match &self.sanitizing {
            _ if text.is_empty() || self.hidden => {}
            None => self.show_text(text),
            Some([sanitizing, _]) => sanitizing.push(text),
        }
    }

    fn show_text(&self, text: &str) {
        if let Some(output) = &self.output {
            output.text(text);
        }
        let offset = self.shown.fetch_add(text.len() as u64, Ordering::Relaxed);
        self.show(OutputKind::Text { offset }, text.to_owned());
    }

    fn tell_reasoning(&self, text: String) {
        match &self.sanitizing {
            _ if text.is_empty() || self.hidden => {}
            None => self.show(OutputKind::Reasoning, text),
            Some([_, sanitizing]) => sanitizing.push(&text),
        }
    }

    fn show(&self, kind: OutputKind, text: String) {
        let delta = OutputDelta { after: self.after, kind, text };
        self.inner.surface.show(&self.session, SessionEvent::Output(delta));
    }
}
