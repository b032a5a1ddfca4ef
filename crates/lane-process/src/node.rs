//! Node: the interpreter, the packages that packs consist of, and the worker that runs them.

#[cfg(target_os = "linux")]
pub(crate) mod environment;
pub(crate) mod interpreter;
#[cfg(target_os = "linux")]
pub(crate) mod names;
#[cfg(target_os = "linux")]
pub(crate) mod pack;
#[cfg(target_os = "linux")]
pub(crate) mod runner;
pub(crate) mod worker;

#[cfg(test)]
mod interpreter_tests;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod names_tests;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod pack_tests;
#[cfg(test)]
mod worker_tests;
