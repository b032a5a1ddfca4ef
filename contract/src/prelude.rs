//! The words of frames, hooks, registries and effects in one `use`, for the kernel, which speaks all of them.

pub use serde::{Deserialize, Serialize};

pub use crate::body::{Body, HooksWord};
pub use crate::content::{Content, DigestOf};
pub use crate::dependencies::{circle, last_first};
pub use crate::desk::{Clerk, Desk};
pub use crate::digest::Digest;
pub use crate::effect::*;
pub use crate::frame::{Draft, Source};
pub use crate::hook::{Artifact, Decision, HookInput, HookPoint, HookSpec, OnFault, Order};
pub use crate::ids::*;
pub use crate::message::*;
pub use crate::patience::*;
pub use crate::problem::{Code, Fault};
pub use crate::registry::*;
pub use crate::round::Round;
pub use crate::session_frames::*;
pub use crate::system_frames::*;
pub use crate::tool::{CallStatus, EffectClass, ToolOutcome, ToolSpec};
