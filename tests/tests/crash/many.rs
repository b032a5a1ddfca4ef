//! Many cases at once: work on all cores, seeded choices, and a summary of what went wrong.
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::examine::Violation;

/// Does something with each item on all cores, and gives what went wrong.
pub fn in_parallel<T: Sync + Clone + Send>(
    items: &[T],
    work: impl Fn(usize, &T) -> Result<(), Violation> + Sync,
) -> Vec<(T, Violation)> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut violations = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(place) else { return violations };
            if let Err(violation) = work(place, item) {
                violations.push((item.clone(), violation));
            }
        }
    };
    let cores = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

/// So many of the items, spread evenly.
pub fn spread<T: Clone>(items: &[T], count: usize) -> Vec<T> {
    let count = count.min(items.len());
    (0..count).map(|place| items[place * items.len() / count].clone()).collect()
}

/// Mixes a number, so that what follows from it looks random and is the same in every run.
pub fn mix(number: u64) -> u64 {
    let mixed = (number ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 13
}

/// The violations by kind, each with how often it was met and where first.
pub fn report<T: Debug>(violations: &[(T, Violation)]) -> String {
    let mut kinds = BTreeMap::new();
    for (case, violation) in violations {
        kinds.entry(violation).or_insert((0, case)).0 += 1;
    }
    kinds
        .iter()
        .map(|(violation, (times, first))| format!("{times} times, first with {first:?}: {violation}\n"))
        .collect()
}
