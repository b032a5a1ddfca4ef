//! Whom the lane tells what goes on: the log's lines, and how a compilation is getting on.

use std::sync::Arc;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::{LogLevel, LogSink};

/// How a compilation is getting on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It begins.
    Started {
        /// How many bytes the component has.
        bytes: u64,
    },
    /// It is done.
    Done {
        /// How many milliseconds it took.
        millis: u64,
    },
}

/// Takes what there is to say about compilations.
pub type ProgressSink = Arc<dyn Fn(&ExtensionId, Progress) + Send + Sync>;

/// Whom to tell; nobody where nobody asked.
#[derive(Clone, Default)]
pub(crate) struct Sinks {
    pub log: Option<LogSink>,
    pub progress: Option<ProgressSink>,
}

impl Sinks {
    pub(crate) fn log(&self, id: &ExtensionId, level: LogLevel, line: &str) {
        if let Some(sink) = &self.log {
            sink(id, level, line);
        }
    }

    pub(crate) fn progress(&self, id: &ExtensionId, progress: Progress) {
        if let Some(sink) = &self.progress {
            sink(id, progress);
        }
    }
}
