//! What the host answered in the middle of a call, taken from the record: one answer after another, and with each what the extension was
//! told while it waited.

use std::collections::VecDeque;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::{HostCall, HostCallKind};
use holdfast_contract::problem::Fault;
use holdfast_contract::session_frames::StreamedUpdates;
use holdfast_contract::wire::{Later, UpdateSink};

/// A host call and its answer.
pub(super) struct RecordedAnswer {
    pub call: HostCall,
    pub answer: Result<Content, Fault>,
    /// What was told meanwhile, if the extension asked for that.
    pub streamed: Option<StreamedUpdates>,
}

/// The answers of one call, in the order in which they were given.
#[derive(Default)]
pub(super) struct RecordedAnswers(VecDeque<RecordedAnswer>);

impl RecordedAnswers {
    pub(super) fn add(&mut self, call: HostCall, answer: Result<Content, Fault>) {
        self.0.push_back(RecordedAnswer { call, answer, streamed: None });
    }

    pub(super) fn add_recorded(&mut self, recorded: RecordedAnswer) {
        self.0.push_back(recorded);
    }

    /// The next answer, whatever it answers. Before a call about which the host may ask the user, the questions go that the extension has
    /// not asked.
    pub(super) fn next(&mut self, call: &HostCall) -> Option<RecordedAnswer> {
        if call.kind().is_some_and(HostCallKind::may_ask_the_user) {
            while self.0.front().is_some_and(|it| matches!(it.call, HostCall::Ui(_))) {
                self.0.pop_front();
            }
        }
        self.0.pop_front()
    }

    /// The answer of a call that was followed. Such a call is recorded when it ends, and others may have been made and answered
    /// meanwhile; of several that are alike, the one that began first.
    pub(super) fn next_streamed(&mut self, call: &HostCall) -> Option<(StreamedUpdates, RecordedAnswer)> {
        let alike = |it: &RecordedAnswer| Some(it.streamed.as_ref().filter(|_| it.call == *call)?.begun);
        let (place, _) =
            (0..).zip(&self.0).filter_map(|(place, it)| Some((place, alike(it)?))).min_by_key(|it| it.1)?;
        let mut recorded = self.0.remove(place)?;
        Some((recorded.streamed.take()?, recorded))
    }
}

/// Tells again what was told, and then answers.
pub(super) fn told_again(
    streamed: StreamedUpdates,
    answer: Result<Content, Fault>,
    updates: Arc<dyn UpdateSink>,
) -> Later<Result<Content, Fault>> {
    Box::pin(async move {
        for update in streamed.updates {
            updates.send(update).await;
        }
        answer
    })
}
