//! Who depends on whom.

use std::collections::BTreeMap;
use std::iter::successors;

use crate::ids::ExtensionId;

/// The way on which an extension depends on itself, if there is one: from it, by what each one needs, back to it.
pub fn circle<'a, N>(
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
    let mut way: Vec<&ExtensionId> = std::iter::once(start).chain(back).collect();
    way.reverse();
    Some(way)
}
