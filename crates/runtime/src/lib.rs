//! The one place that composes: the kernel's machines, the store, the lanes, the models and the policy become a running system.
//!
//! [`Runtime`] owns one actor for the system stream and one per session (`driver/`): an actor feeds facts to its machine, hands
//! the frames to the log and performs the acts, each behind its barrier. [`replay`] feeds a recorded stream to a fresh machine
//! and compares; [`verify`](mod@verify) proves coverage on top of the store's integrity checks. [`rebuild`](mod@rebuild) rebuilds a machine
//! from the log after a stop or a crash. [`upkeep`] erases and collects.

pub mod app;
mod artifacts;
mod background;
pub mod bench;
mod call;
mod call_gate;
mod channel_stream;
mod children;
mod clock;
mod code_agent;
mod commands;
mod context_budget;
mod daily_usage;
mod delegated;
pub mod dev_harness;
pub mod diagnosis;
mod discovery;
mod driver;
mod embedded;
mod executor;
mod fork;
mod host;
mod identity_hash;
mod instances;
mod limit_source;
pub mod loader;
mod machine;
mod messaging;
mod meter;
mod outages;
mod parts;
pub mod rebuild;
mod renderers;
pub mod replay;
mod runtime;
mod schedule_queue;
mod schema_check;
mod schemas;
mod stream_windows;
mod summary;
pub mod upkeep;
mod vault;
pub mod verify;
mod watch;

#[cfg(test)]
mod schedule_queue_tests;

pub use clock::{Clock, SystemClock};
pub use commands::{CommandDone, CommandInfo};
pub use daily_usage::DailyLimit;
pub use discovery::ToolsShown;
pub use driver::{SessionHandle, TurnReport};
pub use embedded::EmbeddedComponent;
pub use host::secrets;
pub use host::setup::{SetupQuestion, SetupState};
pub use machine::Machine;
pub use messaging::{
    AgentTask, ExtensionError, ExtensionStateEvent, OutgoingMessage, Routes, SessionFactory, SessionRequest,
    UserMessage, UserNotice,
};
pub use meter::ModelUsage;
pub use parts::{
    Configuration, Entropy, HomeParts, OsEntropy, Parts, SessionEvent, SilentSurface, Surface, Zone,
};
pub use runtime::{NewSession, Runtime, ShutdownRequest};
pub use schemas::schema;
pub use vault::{HomeVault, InMemoryVault};
pub use watch::FolderWatcher;
