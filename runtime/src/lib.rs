//! The one place that composes: the kernel's machines, the store, the lanes, the models and the policy become a running system.
//!
//! [`Runtime`] owns one actor for the system stream and one per session (`driver/`): an actor feeds facts to its machine, hands
//! the frames to the log and performs the acts, each behind its barrier. [`replay`] feeds a recorded stream to a fresh machine
//! and compares; [`verify`](mod@verify) proves coverage on top of the store's integrity checks. [`refold`] rebuilds a machine
//! from the log after a stop or a crash. [`upkeep`] erases and collects.

mod background;
mod bounds;
mod budget;
mod calling;
mod carried;
mod checks;
mod children;
mod clock;
mod clockwork;
mod code_agent;
mod commands;
mod context;
pub mod diagnosis;
mod discovery;
mod driver;
mod enrich;
mod executor;
mod feed;
pub mod figures;
mod fork;
mod host;
pub mod house;
mod instances;
mod keyed;
mod ledger;
mod living;
pub mod loader;
mod machine;
mod made;
mod meter;
mod network;
mod parts;
mod presence;
pub mod refold;
mod renderers;
pub mod replay;
mod results;
mod runtime;
mod schemas;
pub mod secrets;
mod services;
mod setup;
mod shared;
pub mod upkeep;
mod vault;
pub mod verify;
mod watch;
mod windows;
pub mod workshop;

#[cfg(test)]
mod clockwork_tests;

pub use carried::Component;
pub use clock::{Clock, SystemClock};
pub use commands::{CommandDone, CommandInfo};
pub use discovery::ToolsShown;
pub use driver::{SessionHandle, TurnReport};
pub use ledger::Bound;
pub use living::{
    AgentTask, ExtensionError, ExtensionState, Notice, Opener, Opening, Outgoing, Routes, UserMessage,
};
pub use machine::Machine;
pub use meter::Used;
pub use parts::{Configuration, Entropy, Event, HomeParts, OsEntropy, Parts, Silent, Surface, Zone};
pub use runtime::{NewSession, Runtime, Wanted};
pub use schemas::schema;
pub use setup::{SetupQuestion, SetupState};
pub use vault::{HomeVault, LooseVault};
pub use watch::Watch;
