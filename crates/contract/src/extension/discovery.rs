//! How tools that a model is not shown are found: what the extension with the search tool and the host, which decides what is shown, have in
//! common.

use serde::{Deserialize, Serialize};

use crate::ids::ToolName;

/// The tool that searches the others.
pub const FIND_TOOLS: &str = "find_tools";

/// How many searches of a session are kept in mind. The oldest falls out.
pub const SEARCHES: u64 = 6;

/// The most tools that one search finds.
pub const MAX_FOUND_TOOLS: usize = 10;

/// What a search found, as the extension with the search tool stores it in the session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundTools {
    /// Which of the session's searches it was, from 1.
    pub search: u64,
    /// The tools, best first.
    pub tools: Vec<ToolName>,
}

impl FoundTools {
    /// The key under which a search is kept.
    pub fn key(search: u64) -> String {
        format!("found.{}", search % SEARCHES)
    }
}
