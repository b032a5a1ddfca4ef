//! Frames: the log's envelope, the list of kinds, and the body of each kind.

pub mod body;
pub mod frame;
mod session_choices;
pub mod session_frames;
pub mod snapshot;
pub mod system_frames;
