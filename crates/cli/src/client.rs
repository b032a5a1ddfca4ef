//! The command line as a client of the owner of a home: the link to it, one turn over it, questions and files.

pub(crate) mod attach;
pub(crate) mod background;
pub(crate) mod link;
pub(crate) mod questions;
pub(crate) mod turn;
pub(crate) mod typed;
