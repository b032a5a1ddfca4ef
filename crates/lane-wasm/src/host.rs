//! The imports that the host provides to components: the interfaces of `wit/host.wit`, and the part of WASI that is supported.

pub(crate) mod invocations;
pub(crate) mod link;
mod outside;
mod records;
pub(crate) mod wasi;
