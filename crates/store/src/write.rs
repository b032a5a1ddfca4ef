//! Writing frames: from a draft of the deciding thread to a row on disk.
//!
//! - `stream`: a stream that is open for appending
//! - `queue`: the queue between the callers and the writer thread
//! - `writer`: the writer thread, which commits in groups
//! - `head_file`: how many frames were acknowledged, outside of the database
//! - `seal`: serialises a frame's envelope and chains it
//! - `atomic_append`: frames of several streams and delivery rows in one transaction
//! - `receipt`: tells a caller when its frames are on disk

pub(crate) mod atomic_append;
pub(crate) mod head_file;
pub(crate) mod queue;
pub(crate) mod receipt;
pub(crate) mod seal;
pub(crate) mod stream;
pub(crate) mod writer;
