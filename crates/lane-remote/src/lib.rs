//! The remote lane: an extension is another Holdfast that offers tools. `holdfast_contract::remote` has the messages.
//!
//! Start at [`RemoteLane`]. `connection` speaks to the other side, `pins` remembers the definitions that were accepted.
//!
//! Use it for tools of another machine that runs Holdfast. Calls are judged and recorded on both sides, and what a tool answered is
//! never asked for again.

mod connection;
mod lane;
mod pins;

pub use lane::{FindToken, RemoteLane, RemoteTarget};
