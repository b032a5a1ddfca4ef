//! Events in the log.
//!
//! - `load`: rebuilds the queues at startup
//! - `dead_letters`: lists, retries and discards dead letters
//! - `retention`: deletes expired events

pub(crate) mod dead_letters;
pub(crate) mod load;
pub(crate) mod retention;
