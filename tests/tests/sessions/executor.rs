//! The tool executor: how many calls run at once, when a tool is left alone, and how a long result is read.

mod breaker;
mod queues;
mod results;
