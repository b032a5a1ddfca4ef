//! Tools as models and people see them: which of many tools a model is shown, searching the others, how surfaces render calls,
//! and slash commands.
//!
//! | file | contents |
//! |---|---|
//! | `discovery.rs` | which tools a model is shown, and the result of a search |
//! | `rank.rs`, `words.rs` | ranking tools for a request: BM25 over stems and synonyms |
//! | `renderers.rs` | how extensions render the calls of their tools |
//! | `commands.rs` | slash commands, built in and of extensions |

mod commands;
pub(crate) mod discovery;
mod rank;
mod renderers;
mod words;

pub use commands::{CommandDone, CommandInfo};
pub use discovery::ToolsShown;
pub use rank::Ranker;
