//! The lines that extensions log.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::ExtensionId;

/// How important a line of an extension's log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// For whoever looks for a fault.
    Debug,
    /// What goes on.
    #[default]
    Info,
    /// Something is odd.
    Warning,
    /// Something failed.
    Error,
}

/// Takes the lines that extensions log.
pub type LogSink = Arc<dyn Fn(&ExtensionId, LogLevel, &str) + Send + Sync>;
