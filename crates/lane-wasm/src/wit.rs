//! The interface in `wit/` as Rust: the names of interfaces and functions, their signatures, and the types that cross the boundary.

pub(crate) mod abi;
pub(crate) mod functions;
pub(crate) mod interfaces;
