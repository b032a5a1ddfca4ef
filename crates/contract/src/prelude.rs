//! The words of frames, hooks, registries and effects in one `use`, for the kernel, which speaks all of them.

pub use serde::{Deserialize, Serialize};

pub use crate::body::{Body, HookAnswers};
pub use crate::content::{Content, DigestOf};
pub use crate::dependencies::{find_cycle, shutdown_order};
pub use crate::digest::Digest;
pub use crate::effect::*;
pub use crate::frame::{Draft, FrameSource};
pub use crate::hook::{Artifact, Decision, HookInput, HookPoint, HookSpec, OnFault, Order};
pub use crate::ids::*;
pub use crate::message::*;
pub use crate::names::{Overrides, ReservedNames, duplicates};
pub use crate::problem::{Code, Fault};
pub use crate::registry::*;
pub use crate::round::Round;
pub use crate::session_frames::*;
pub use crate::step_recorder::{StepRecorder, StreamClock};
pub use crate::supervision::*;
pub use crate::system_frames::*;
pub use crate::tool::{CallStatus, EffectClass, ToolOutcome, ToolSpec};
