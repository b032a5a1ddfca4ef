//! Two kinds of benches: instruction counts that gate, and times that are published.
//!
//! [`counted`] runs benches under callgrind, [`budgets`] holds their counts against `budgets.json`. The benches themselves live
//! in `benches/counted/`; how to add one stands in this folder's README.

pub mod budgets;
pub mod counted;
pub mod workload;

#[cfg(test)]
mod budgets_tests;
#[cfg(test)]
mod counted_tests;

/// The same as the binary's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
