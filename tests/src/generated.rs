//! Generated sessions on the real runtime: what happens in them follows from a seed or from the bytes of a fuzzer, and afterwards they
//! are verified, replayed and checked. `tests/generated.rs` runs a thousand of them.
#![allow(missing_docs, reason = "fixtures of the tests of this package")]

pub mod check;
pub mod dice;
pub mod hooks;
pub mod plan;
pub mod scratch;
pub mod tools;
pub mod world;
