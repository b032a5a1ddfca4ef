//! Delivering events to subscribers.
//!
//! - `dispatcher`: the task that starts deliveries and applies their outcomes
//! - `delivery`: one call of a handler
//! - `queue`: the order of one subscriber's events, a plain data structure
//! - `record`: outcomes as frames and rows

pub(crate) mod delivery;
pub(crate) mod dispatcher;
pub(crate) mod queue;
pub(crate) mod record;
