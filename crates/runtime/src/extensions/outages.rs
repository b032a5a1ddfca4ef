//! Gates and guardrails that are not active: which of them are expected at the start, and how long a turn waits for one.

use std::collections::BTreeSet;

use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::problem::{Fault, Problem};
use holdfast_contract::system_frames::FoundExtension;

use crate::runtime::Runtime;
use crate::system::SystemCommand;

/// How long a turn waits for a gate or guardrail that is starting before what it judges is denied.
pub(crate) const START_WAIT: Millis = Millis(30_000);

impl Runtime {
    /// Reports everything that was found at the start. An extension that judged before and was not found is reported as removed; if its
    /// folder cannot be read, it is reported as rejected, and what it judges is denied.
    pub(crate) async fn discovered(
        &self,
        found: Vec<FoundExtension>,
        rejected: Vec<(ExtensionId, Fault)>,
    ) -> Result<(), Problem> {
        let judging = self.inner().system.ask(SystemCommand::Judging).await?;
        let there = found.iter().map(|found| &found.id).chain(rejected.iter().map(|(id, _)| id));
        let there: BTreeSet<ExtensionId> = there.cloned().collect();
        // Before those that depend on them, which say why they cannot start.
        rejected.into_iter().for_each(|(id, fault)| self.rejected(id, fault));
        self.found(found);
        for id in judging.into_iter().filter(|id| !there.contains(id)) {
            let configuration = self.inner().home.configuration();
            match configuration.map_or(Ok(()), |configuration| configuration.is_gone(&id)) {
                Ok(()) => self.removed(id),
                Err(problem) => self.rejected(id, problem.to_located_fault()),
            }
        }
        Ok(())
    }
}
