//! Frames: the log's envelope, the list of kinds, and the body of each kind.

pub mod body;
mod contents;
pub mod frame;
mod host_frames;
mod model_frames;
mod session_choices;
pub mod session_frames;
pub mod snapshot;
pub mod system_frames;
mod tool_frames;
