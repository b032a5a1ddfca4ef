//! The tool executor: how many calls run at once, when a circuit breaker opens, and how a long result is read.

mod breaker;
mod queues;
mod results;
