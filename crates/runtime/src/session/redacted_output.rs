//! A model's output on its way to surfaces and channels: secrets are redacted, also where a value arrives in several deltas.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_contract::effect::ModelAct;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::wire::Later;
use holdfast_model::{Delta, Model};
use holdfast_secrets::RedactedStream;

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
    feed: Option<Arc<OutputStream>>,
    /// The text and what is considered, each as far as it is held back; none where nothing is secret.
    hiding: Option<Mutex<[Option<RedactedStream>; 2]>>,
}

impl RedactedOutput {
    pub(super) fn new(
        inner: &Arc<Inner>,
        session: &StreamId,
        after: Seq,
        feed: Option<Arc<OutputStream>>,
    ) -> Arc<Self> {
        let stream = |secrets: &Arc<Secrets>| Some(secrets.hide_in_stream());
        let hiding = inner.home.secrets().map(|secrets| Mutex::new([stream(secrets), stream(secrets)]));
        let (inner, session, shown) = (inner.clone(), session.clone(), AtomicU64::default());
        Arc::new(Self { inner, session, after, shown, feed, hiding })
    }

    /// Asks a model and shows what it writes.
    pub(super) async fn follow(self: Arc<Self>, model: Arc<dyn Model>, act: Box<ModelAct>) -> ModelOutcome {
        let written = self.clone();
        let deltas = Arc::new(move |delta: Delta<'_>| match delta {
            Delta::Text(text) => written.tell(&written.without_secrets(0, text)),
            Delta::Reasoning(text) => written.tell_reasoning(written.without_secrets(1, text)),
        });
        let answer = self.paced(model.complete(act, deltas)).await;
        self.tell(&self.held_back(0));
        self.tell_reasoning(self.held_back(1));
        answer
    }

    /// Reads a model no faster than the channel takes what it writes, where there is one.
    pub(super) async fn paced(&self, answer: Later<ModelOutcome>) -> ModelOutcome {
        match &self.feed {
            None => answer.await,
            Some(feed) => feed.paced(answer).await,
        }
    }

    /// A piece of the text (0) or of what is considered (1), as far as it can be shown.
    pub(super) fn without_secrets(&self, place: usize, piece: &str) -> String {
        let Some(hiding) = &self.hiding else { return piece.to_owned() };
        let mut streams = hiding.lock().unwrap_or_else(PoisonError::into_inner);
        streams[place].as_mut().map(|stream| stream.push(piece)).unwrap_or_default()
    }

    /// What was held back: no more comes.
    pub(super) fn held_back(&self, place: usize) -> String {
        let Some(hiding) = &self.hiding else { return String::new() };
        let mut streams = hiding.lock().unwrap_or_else(PoisonError::into_inner);
        streams[place].take().map(RedactedStream::finish).unwrap_or_default()
    }

    /// Shows a piece of the text.
    pub(super) fn tell(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some(feed) = &self.feed {
            feed.text(text);
        }
        let offset = self.shown.fetch_add(text.len() as u64, Ordering::Relaxed);
        self.show(OutputKind::Text { offset }, text.to_owned());
    }

    fn tell_reasoning(&self, text: String) {
        if !text.is_empty() {
            self.show(OutputKind::Reasoning, text);
        }
    }

    fn show(&self, kind: OutputKind, text: String) {
        let delta = OutputDelta { after: self.after, kind, text };
        self.inner.surface.show(&self.session, SessionEvent::Output(delta));
    }
}
