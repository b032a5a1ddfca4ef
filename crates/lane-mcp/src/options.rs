//! What can be set for a server besides how it is reached: the extension's configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_contract::matcher::glob;
use serde::{Deserialize, Serialize};

/// How long a server may take to start and to list what it has.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// What can be set for a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpOptions {
    /// What the names of its tools begin with; the extension's id if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Globs of the tools that are offered; all if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Globs of the tools that are not offered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// How long the server may take to start, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timeout_ms: Option<u64>,
    /// Whether the server is told which folder the session works in.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub roots: bool,
    /// Variables of a server that is started, or headers of one that is reached, with `${NAME}` for secrets. They go before the
    /// manifest's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

impl McpOptions {
    /// Whether a tool is offered, by the name that the server gives it.
    pub fn offers(&self, tool: &str) -> bool {
        let any = |globs: &[String]| globs.iter().any(|pattern| glob(pattern, tool));
        self.allow.as_deref().is_none_or(any) && !any(&self.deny)
    }

    /// How long the server may take to start.
    pub fn start_timeout(&self) -> Duration {
        self.start_timeout_ms.map_or(START_TIMEOUT, Duration::from_millis)
    }
}
