//! The native lane: extensions written as plain Rust against the role traits, built into the program.
//!
//! [`NativeExtension`] is the builder with which an author assembles the roles of an extension; [`NativeLane`] runs them under the same
//! calls as every other lane. Native code is trusted: it must not block its thread, and it manages its own state between calls. If
//! roles depend only on their input and the host's answers, declare them [`NativeExtension::replayable`]; strict replay then runs
//! them again.
//!
//! [`on_thread`] is for blocking work, and [`Workspace`] is the folder that tools may work in, separate from the home.
//! [`PROTECTED_NAMES`] are the entries of a workspace that need care. [`input`] builds the input schema of a tool.

mod extension;
pub mod input;
mod instance;
mod lane;
mod mounts;
mod protected;
mod roles;
mod thread;
mod workspace;
mod workspaces;

#[cfg(test)]
mod thread_tests;
#[cfg(test)]
mod workspace_tests;

pub use extension::NativeExtension;
pub use lane::NativeLane;
pub use protected::{BARE_REPOSITORY, PROTECTED_NAMES, protected_name, protected_part};
pub use roles::{
    Api, Channel, FnHook, FnTool, Functions, Hook, Lifecycle, Service, StreamingChannel, Subscriber, Tasks,
    Tool, now,
};
pub use thread::on_thread;
pub use workspace::Workspace;
pub use workspaces::Workspaces;
