//! Node: the interpreter, the packages that packs consist of, and the worker that runs them.

#[cfg(target_os = "linux")]
pub(crate) mod environment;
#[cfg(target_os = "linux")]
pub(crate) mod interpreter;
pub(crate) mod names;
#[cfg(target_os = "linux")]
pub(crate) mod pack;
#[cfg(target_os = "linux")]
pub(crate) mod runner;
#[cfg(target_os = "linux")]
pub(crate) mod worker;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod interpreter_tests;
#[cfg(test)]
mod names_tests;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod pack_tests;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod worker_tests;
