//! What extensions declare and register: tools, hooks, roles, and the registry that turns are pinned to.

pub mod budgets;
pub mod discovery;
pub mod exports;
pub mod hook;
pub mod host_call;
pub mod matcher;
pub mod names;
pub mod registry;
pub mod role;
pub mod sandbox;
pub mod tool;
