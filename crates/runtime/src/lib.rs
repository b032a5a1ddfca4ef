//! Use this crate for running sessions and extensions: it feeds facts to the kernel's machines, hands their frames to the store,
//! and performs their effects on models, lanes and surfaces. It does not read a home from disk, which the crate `app` does, and it
//! knows lanes only as `dyn Lane`.
//!
//! Start at [`Runtime`] (`runtime.rs`), which is made of [`Parts`] (`parts.rs`). A user's message becomes a command of a session's
//! actor (`session/`), whose machine decides what happens; the actor performs it. A tool call or a hook goes through `calls/` to an
//! extension's instance, which `extensions/` keeps. What an extension asks of the program in return is served in `host.rs` and
//! `host/`. The system's actor (`system/`) starts and stops extensions. `messaging/` connects the bus, the
//! channels and turns that no surface started. `tools/` selects and finds tools, and runs slash commands. `usage/` counts what is
//! used and finds the limit that applies. `history/` rebuilds machines from the log, forks, erases and collects.

pub mod calls;
mod clock;
mod extensions;
mod history;
mod host;
mod messaging;
mod parts;
mod runtime;
mod session;
mod system;
pub mod tools;
mod usage;

pub use clock::{Clock, SystemClock};
pub use extensions::{Preparations, diagnosis};
pub use history::{CollectionReport, Machine, rebuild, recorded_start, upkeep};
pub use host::outside::http::{HttpClient, IncomingResponse, OutgoingRequest};
pub use host::secrets;
pub use host::setup::{SetupQuestion, SetupState};
pub use messaging::{
    AgentTask, ChannelView, ExpectedAnswer, ExtensionError, ExtensionStateEvent, OutgoingMessage,
    QuestionRef, QuestionSubject, Routes, SessionFactory, SessionRequest, UserMessage, UserNotice,
    WaitingQuestion,
};
pub use parts::{
    Configuration, Entropy, ExtensionChanges, ExtensionInterfaces, FilePlaces, HomeParts, InstalledExtension,
    OsEntropy, OutputDelta, OutputKind, Parts, RemovedExtension, ReportChanges, SessionEvent, SilentSurface,
    Surface, Variables, Zone,
};
pub use runtime::{DefaultModel, Runtime, ShutdownRequest};
pub use session::{NewSession, SessionHandle, TurnReport};
pub use system::{RunOutcome, ScheduleRun, ScheduleView};
pub use tools::{CommandDone, CommandInfo, ToolsShown};
pub use usage::{DailyLimit, ModelUsage};
