//! The plugin lane: an extension is a dynamic library in this process, called through a table of four C functions. The messages are
//! those of `holdfast_contract::protocol`, as bytes.
//!
//! Start at [`PluginLane`]. `abi` is the table, `library` loads a library and calls it, `call` runs one call on a thread of its own
//! and answers what it asks, `instance` is what the runtime holds, and `crash` finds out whose code ended the process.
//!
//! Use it for code that neither a component nor a program can be, and that the user trusts as much as this program: a plugin is not
//! confined by anything.

mod abi;
mod call;
mod crash;
mod instance;
mod lane;
mod library;

#[cfg(test)]
mod crash_tests;

pub use lane::{PluginLane, PluginPlaces, ProfileCheck};
