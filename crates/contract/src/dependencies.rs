//! Who depends on whom.

use std::collections::BTreeMap;
use std::iter::successors;

use crate::ids::ExtensionId;

/// The way on which an extension depends on itself, if there is one: from it, by what each one needs, back to it.
pub fn find_cycle<'a, N>(
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

/// The order in which to let go of these, each with what it needs: the last one first, but nobody before those that need it. Gives
/// their places in the list.
pub fn shutdown_order(list: &[(&ExtensionId, &[ExtensionId])]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..list.len()).collect();
    let mut order = Vec::with_capacity(list.len());
    while !left.is_empty() {
        let needed = |id: &ExtensionId| left.iter().any(|place| list[*place].1.contains(id));
        // Where they need each other in a circle, the last one goes all the same.
        let next = left.iter().rposition(|place| !needed(list[*place].0)).unwrap_or(left.len() - 1);
        order.push(left.remove(next));
    }
    order
}
