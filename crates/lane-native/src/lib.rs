//! The native lane: extensions written as plain Rust against the role traits, built into the program.
//!
//! [`NativeExtension`] gathers an extension's roles; [`NativeLane`] runs them under the same calls as every other lane. Native code
//! is trusted: it must not block its thread, and what it keeps between calls is its own affair. Roles that depend on nothing
//! but their input and the host's answers can say so with [`NativeExtension::replayable`], and strict replay then runs them again.
//!
//! [`on_thread`] is for work that blocks, and [`Workspace`] is the folder that tools may work in, kept apart from the home.
//! [`input`] writes down what a tool takes.

mod extension;
pub mod input;
mod instance;
mod lane;
mod mounts;
mod roles;
mod thread;
mod workspace;

#[cfg(test)]
mod thread_tests;
#[cfg(test)]
mod workspace_tests;

pub use extension::NativeExtension;
pub use lane::NativeLane;
pub use roles::{
    Api, Channel, FnHook, FnTool, Functions, Hook, Lifecycle, Service, StreamingChannel, Subscriber, Tasks,
    Tool, now,
};
pub use thread::on_thread;
pub use workspace::Workspace;
