//! Gates and guardrails that are not up: which of them are expected at the start, and how long a turn waits for one.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::problem::{Fault, Problem};
use holdfast_contract::system_frames::FoundExtension;

use crate::runtime::{Inner, Runtime};
use crate::system::SystemCommand;

/// How long a turn waits for a gate or guardrail that is on its way up before what it judges is denied.
pub(crate) const START_WAIT: Millis = Millis(30_000);

impl Runtime {
    /// Reports everything that is there at the start. Of an extension that judged before and is not among it, it is reported that it
    /// is gone; where that cannot be told, that it cannot be read, and what it judges is denied.
    pub(crate) async fn discovered(
        &self,
        found: Vec<FoundExtension>,
        rejected: Vec<(ExtensionId, Fault)>,
    ) -> Result<(), Problem> {
        let judging = self.ask_system(SystemCommand::Judging).await?;
        let there = found.iter().map(|found| &found.id).chain(rejected.iter().map(|(id, _)| id));
        let there: BTreeSet<ExtensionId> = there.cloned().collect();
        self.found(found);
        rejected.into_iter().for_each(|(id, fault)| self.rejected(id, fault));
        for id in judging.into_iter().filter(|id| !there.contains(id)) {
            let configuration = self.inner().configuration.as_ref();
            match configuration.map_or(Ok(()), |configuration| configuration.is_gone(&id)) {
                Ok(()) => self.removed(id),
                Err(problem) => self.rejected(id, problem.to_fault()),
            }
        }
        Ok(())
    }
}

impl Inner {
    /// Whether a turn that begins now would miss a gate or guardrail that is on its way up.
    pub(crate) fn awaits_judges(&self) -> bool {
        self.awaiting.load(Ordering::Acquire)
    }

    /// Waits until no gate or guardrail is on its way up any more, or it is this late.
    pub(crate) async fn judges_ready(&self, until: Millis) {
        loop {
            let mut changed = std::pin::pin!(self.registry_changed.notified());
            // Before the look, so that no change in between is missed.
            changed.as_mut().enable();
            let now = self.clock.now();
            if now >= until || !self.awaits_judges() {
                return;
            }
            tokio::select! {
                () = changed => {}
                () = self.clock.sleep(until.since(now)) => {}
            }
        }
    }
}
