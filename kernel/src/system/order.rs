//! Dependency order: who can be brought up, who waits, and who cannot because of a missing dependency or a circle.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Fault};

/// What each extension depends on.
pub(super) type Dependencies<'a> = BTreeMap<&'a ExtensionId, &'a [ExtensionId]>;

/// The extensions that can never come up as things stand, with the reason.
pub(super) fn hopeless(all: &Dependencies<'_>) -> BTreeMap<ExtensionId, Fault> {
    let mut faults = BTreeMap::new();
    for (id, needs) in all {
        if let Some(missing) = needs.iter().find(|needed| !all.contains_key(needed)) {
            let message = format!("`{id}` depends on `{missing}`, which is not installed");
            faults.insert((*id).clone(), Fault::new(Code::ExtensionDependency, message));
        }
    }
    for id in circle(all) {
        let message = format!("`{id}` depends on itself through {}", path(all, &id).join(" → "));
        faults.insert(id, Fault::new(Code::ExtensionCycle, message));
    }
    faults
}

/// The members of circles: those that reach themselves.
fn circle(all: &Dependencies<'_>) -> Vec<ExtensionId> {
    all.keys().filter(|id| reaches(all, id, id)).map(|id| (*id).clone()).collect()
}

fn reaches(all: &Dependencies<'_>, from: &ExtensionId, to: &ExtensionId) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(id) = open.pop() {
        for needed in all.get(id).copied().unwrap_or_default() {
            if needed == to {
                return true;
            }
            if seen.insert(needed) {
                open.push(needed);
            }
        }
    }
    false
}

/// One way round the circle, for the message.
fn path<'a>(all: &Dependencies<'a>, start: &'a ExtensionId) -> Vec<&'a str> {
    let mut way = vec![start.as_str()];
    let mut here = start;
    while let Some(next) =
        all.get(here).copied().unwrap_or_default().iter().find(|id| *id == start || reaches(all, id, start))
    {
        way.push(next.as_str());
        if next == start || way.len() > all.len() {
            break;
        }
        here = next;
    }
    way
}
