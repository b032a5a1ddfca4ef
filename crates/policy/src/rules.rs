//! Rules of a policy.
//!
//! - `rule`: a rule with its conditions
//! - `matching`: whether a rule applies to a call
//! - `examples`: checks a rule against its own examples when it is loaded

pub(crate) mod examples;
pub(crate) mod matching;
pub(crate) mod rule;

#[cfg(test)]
mod matching_tests;
