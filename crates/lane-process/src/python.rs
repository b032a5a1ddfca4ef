//! Python: the interpreter, the packages that an extension requires, and the worker that runs files and classes.

#[cfg(target_os = "linux")]
pub(crate) mod environment;
pub(crate) mod interpreter;
#[cfg(target_os = "linux")]
pub(crate) mod requirements;
pub(crate) mod worker;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod interpreter_tests;
#[cfg(test)]
mod worker_tests;
