//! Use this crate for running sessions and extensions: it feeds facts to the kernel's machines, hands their frames to the store,
//! and performs their effects on models, lanes and surfaces. It does not read a home from disk, which the crate `app` does, and it
//! knows lanes only as `dyn Lane`.

mod artifacts;
mod background;
pub mod calls;
mod channel_stream;
mod children;
mod clock;
mod code_agent;
mod daily_usage;
mod delegated;
pub mod diagnosis;
mod driver;
mod fork;
mod host;
mod limit_source;
mod log_search;
mod machine;
mod messaging;
mod meter;
mod outages;
mod parts;
pub mod rebuild;
mod runtime;
mod schedule_queue;
mod summary;
pub mod tools;
pub mod upkeep;

#[cfg(test)]
mod schedule_queue_tests;

pub use clock::{Clock, SystemClock};
pub use daily_usage::DailyLimit;
pub use driver::{SessionHandle, TurnReport};
pub use host::secrets;
pub use host::setup::{SetupQuestion, SetupState};
pub use machine::Machine;
pub use messaging::{
    AgentTask, ExtensionError, ExtensionStateEvent, OutgoingMessage, Routes, SessionFactory, SessionRequest,
    UserMessage, UserNotice,
};
pub use meter::ModelUsage;
pub use parts::{
    Configuration, Entropy, HomeParts, OsEntropy, OutputDelta, OutputKind, Parts, SessionEvent,
    SilentSurface, Surface, Zone,
};
pub use runtime::{NewSession, Runtime, ShutdownRequest};
pub use tools::{CommandDone, CommandInfo, ToolsShown};
