//! Retention of a log that is in use: old frames of every stream are collected, and the file becomes smaller.
//!
//! A session in which a turn runs is left out; the next round takes it. The system stream is collected like the others, as far as its
//! snapshot reaches. What it proves about other streams is recorded again first.

use std::sync::Arc;

use holdfast_contract::ids::{Millis, StreamId};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::system_frames::LogCheckpointed;
use holdfast_store::{Collected, Retention, Store};

use super::upkeep;
use crate::runtime::Runtime;

/// How often the retention of the settings is applied.
const EVERY: Millis = Millis(24 * 60 * 60 * 1_000);
/// Frames of the system stream that are kept, whatever the retention: they say what happened to extensions lately.
const MIN_SYSTEM_FRAMES: u64 = 1024;

/// What a round of collection removed.
#[derive(Debug, Default)]
pub struct CollectionReport {
    /// By stream; none for a session that is in use.
    pub streams: Vec<(StreamId, Option<Collected>)>,
    /// Registries, policies and generations that nothing refers to any more.
    pub objects: u64,
    /// By how many bytes the file has become smaller.
    pub freed_bytes: u64,
}

impl Runtime {
    /// Applies this retention now and every day, until the runtime is dropped. A round that fails is tried again a day later.
    pub fn watch_retention(&self, retention: Retention) {
        if retention == Retention::default() {
            return;
        }
        let (inner, clock) = (Arc::downgrade(self.inner()), self.inner().clock.clone());
        tokio::spawn(async move {
            loop {
                let Some(inner) = inner.upgrade() else { return };
                let _failed = Runtime::of(&inner).collect_all(None, retention).await;
                drop(inner);
                clock.sleep(EVERY).await;
            }
        });
    }

    /// Collects the frames of one stream, or of all, that are past this retention, and what nothing refers to then.
    pub async fn collect_all(
        &self,
        only: Option<StreamId>,
        retention: Retention,
    ) -> Result<CollectionReport, Problem> {
        // Deliveries past their deadline do not keep frames.
        self.bus().tidy().await?;
        let streams = match only {
            Some(id) => vec![id],
            None => self.store().streams()?.into_iter().map(|info| info.id).collect(),
        };
        // The system stream comes last: the checkpoints of the others are recorded in it.
        let (system, others): (Vec<_>, Vec<_>) = streams.into_iter().partition(StreamId::is_system);
        let mut report = CollectionReport::default();
        let mut failed = None;
        for id in others {
            match self.collect(&id, retention).await {
                Ok(collected) => report.streams.push((id, collected)),
                // A stream that is damaged keeps no other from being collected.
                Err(problem) => drop(failed.get_or_insert(problem)),
            }
        }
        for id in system {
            let collected = self.collect_system(retention).await?;
            report.streams.push((id, Some(collected)));
        }
        if let Some(problem) = failed {
            return Err(problem);
        }
        if report.streams.iter().flat_map(|(_, collected)| collected).any(|collected| collected.frames > 0) {
            report.objects = self.on_store(Store::sweep).await?;
        }
        report.freed_bytes = self.on_store(Store::shrink).await?;
        Ok(report)
    }

    /// Collects the frames of a session or of the bus that are past their retention; none if the session is in use.
    pub async fn collect(&self, id: &StreamId, retention: Retention) -> Result<Option<Collected>, Problem> {
        if id.is_system() {
            return self.collect_system(retention).await.map(Some);
        }
        if !self.inner().sessions.release(id).await? {
            return Ok(None);
        }
        let inner = self.inner();
        let checkpoint =
            inner.sessions.unless_open(id, || upkeep::to_collect(&inner.store, &*inner.clock, id, retention));
        let Some(checkpoint) = checkpoint.transpose()? else { return Ok(None) };
        let Some(checkpoint) = checkpoint else { return Ok(Some(Collected::default())) };
        self.record(checkpoint.clone()).await?;
        self.store().collect(id, checkpoint.seq).map(Some)
    }

    async fn collect_system(&self, retention: Retention) -> Result<Collected, Problem> {
        let max_frames = retention.max_frames.map(|most| most.max(MIN_SYSTEM_FRAMES));
        let (store, retention) = (self.store(), Retention { max_frames, ..retention });
        store.flush()?;
        let Some(last) = store.system_collectable(retention, self.now())? else {
            return Ok(Collected::default());
        };
        let renewed = store.evidence_to_renew(last.seq)?;
        let streams = store.streams()?.into_iter();
        let first = streams.filter(|info| info.id.is_system()).find_map(|info| info.first);
        let going = first.map_or(0, |first| last.seq.0.saturating_sub(first.0) + 1);
        // Proofs that are recorded again take space too: it is not worth it for a few frames.
        if going < 2 * (renewed.len() as u64 + 1) {
            return Ok(Collected::default());
        }
        renewed.into_iter().for_each(|body| self.inner().system.tell(body));
        let stream = StreamId::system();
        self.record(LogCheckpointed { stream: stream.clone(), seq: last.seq, hash: last.hash }).await?;
        store.collect(&stream, last.seq)
    }

    /// Does something with the store that takes its time.
    async fn on_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let store = self.store().clone();
        let done = tokio::task::spawn_blocking(move || work(&store)).await;
        done.unwrap_or_else(|error| Err(Problem::new(Code::Internal, format!("the log's upkeep: {error}"))))
    }
}
