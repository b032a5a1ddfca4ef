//! Python: the interpreter, the packages that an extension requires, and the worker that runs files and classes.

pub(crate) mod environment;
pub(crate) mod interpreter;
pub(crate) mod requirements;
pub(crate) mod step;
pub(crate) mod worker;

#[cfg(test)]
mod interpreter_tests;
#[cfg(test)]
mod worker_tests;
