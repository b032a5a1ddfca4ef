//! A session: its messages, agents and limits, and what the kernel takes and returns.

pub mod agents;
pub mod channel_question;
pub mod context;
pub mod effect;
pub mod limits;
pub mod message;
