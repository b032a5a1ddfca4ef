//! The lines that extensions log, and what takes long while they come up.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::ExtensionId;

/// How important a line of an extension's log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Details for debugging.
    Debug,
    /// What goes on.
    #[default]
    Info,
    /// Something is odd.
    Warning,
    /// Something failed.
    Error,
    /// What a program printed, on standard output or standard error. How important it is, nobody said.
    #[serde(skip)]
    Printed,
}

/// Takes the lines that extensions log.
pub type LogSink = Arc<dyn Fn(&ExtensionId, LogLevel, &str) + Send + Sync>;

/// What takes long before an extension can serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A component is being compiled.
    Compiling {
        /// How many bytes it has.
        bytes: u64,
    },
    /// It is compiled.
    Compiled {
        /// How many milliseconds it took.
        millis: u64,
    },
    /// Packages that it needs are being installed.
    Installing {
        /// Which.
        packages: Vec<String>,
    },
    /// They are there.
    Installed {
        /// How many milliseconds it took.
        millis: u64,
    },
}

/// Takes what there is to say about that.
pub type ProgressSink = Arc<dyn Fn(&ExtensionId, Progress) + Send + Sync>;

/// Where to report the outcome, if it was asked for.
#[derive(Clone, Default)]
pub struct Sinks {
    /// Who takes the log's lines.
    pub log: Option<LogSink>,
    /// Who is told what takes long.
    pub progress: Option<ProgressSink>,
}

impl Sinks {
    /// A line for the log.
    pub fn log(&self, id: &ExtensionId, level: LogLevel, line: &str) {
        if let Some(sink) = &self.log {
            sink(id, level, line);
        }
    }

    /// What takes long.
    pub fn progress(&self, id: &ExtensionId, progress: Progress) {
        if let Some(sink) = &self.progress {
            sink(id, progress);
        }
    }
}
