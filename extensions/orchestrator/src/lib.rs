//! What the agent is told about where it is. [`extension`] is the whole of it; `channel.rs` says which channel and user the conversation is
//! on.

mod channel;

use holdfast_lane_native::Extension;

use crate::channel::ActiveChannel;

/// The extension.
pub fn extension() -> Extension {
    Extension::new("orchestrator", env!("CARGO_PKG_VERSION")).hook(ActiveChannel).replayable()
}
