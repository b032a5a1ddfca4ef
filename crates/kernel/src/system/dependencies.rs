//! Dependencies between extensions: which one blocks another, cycles, and the order of a shutdown.

use std::collections::BTreeMap;
use std::iter::{once, successors};

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::system_frames::FoundExtension;

use super::System;
use super::generation::GenerationState;

impl System {
    /// Why an extension cannot begin to start.
    pub(super) fn blocked_by(&self, found: &FoundExtension) -> Option<Fault> {
        self.cycle(&found.id).or_else(|| self.missing_dependency(found))
    }

    /// Why an extension cannot stay active, or go on starting: one that it depends on is missing or has failed.
    pub(super) fn missing_dependency(&self, found: &FoundExtension) -> Option<Fault> {
        found.depends_on.iter().find_map(|needed| {
            let extension = self.extensions.get(needed);
            let why = match extension.map(|it| (it.is_up(), &it.fault)) {
                Some((true, _)) => return None,
                Some((false, Some(fault))) => format!("failed: {}", fault.message),
                Some((false, None)) | None => "is not installed".to_owned(),
            };
            let message = format!("`{}` depends on `{needed}`, which {why}", found.id);
            Some(Fault::new(Code::ExtensionDependency, message))
        })
    }

    /// The fault of an extension that depends on itself.
    fn cycle(&self, start: &ExtensionId) -> Option<Fault> {
        let cycle: Vec<&str> =
            find_cycle(start, |id| self.needs(id))?.into_iter().map(ExtensionId::as_str).collect();
        let message = format!("`{start}` depends on itself through {}", cycle.join(" → "));
        Some(Fault::new(Code::ExtensionCycle, message))
    }

    /// What an extension depends on, as it was found and as its generations were.
    fn needs<'a>(&'a self, id: &ExtensionId) -> impl Iterator<Item = &'a ExtensionId> {
        self.extensions.get(id).into_iter().flat_map(|extension| {
            let up = extension.generations.iter().filter(|it| it.state != GenerationState::Stopping);
            extension.found.iter().chain(up.map(|it| &it.found)).flat_map(|found| &found.depends_on)
        })
    }
}

/// The cycle through which an extension depends on itself, if there is one: it starts and ends with the extension.
fn find_cycle<'a, N>(
    start: &'a ExtensionId,
    needs: impl Fn(&'a ExtensionId) -> N,
) -> Option<Vec<&'a ExtensionId>>
where
    N: Iterator<Item = &'a ExtensionId>,
{
    let mut needed_by = BTreeMap::new();
    let mut open = vec![start];
    while let Some(here) = open.pop() {
        for needed in needs(here) {
            if !needed_by.contains_key(needed) {
                needed_by.insert(needed, here);
                open.push(needed);
            }
        }
    }
    let last = needed_by.get(start)?;
    let back = successors(Some(*last), |id| needed_by.get(id).copied().filter(|_| *id != start));
    let mut cycle: Vec<&ExtensionId> = once(start).chain(back).collect();
    cycle.reverse();
    Some(cycle)
}

/// The order in which to stop these, each given with what it needs: the last one first, but none before those that need it. The
/// result lists positions.
pub(super) fn shutdown_order(list: &[(&ExtensionId, &[ExtensionId])]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..list.len()).collect();
    let mut order = Vec::with_capacity(list.len());
    while !left.is_empty() {
        let needed = |id: &ExtensionId| left.iter().any(|position| list[*position].1.contains(id));
        // In a cycle there is no right order: the last one stops first.
        let next = left.iter().rposition(|position| !needed(list[*position].0)).unwrap_or(left.len() - 1);
        order.push(left.remove(next));
    }
    order
}
