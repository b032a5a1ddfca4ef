//! Policy: who may do what. Gate 0 of every tool call, and what extensions are granted.
//!
//! Start at [`Policy`]: it is read from `policy.yaml` or made from a built-in [`Profile`], is stored under its digest, and
//! judges a [`PolicyRequest`] with [`Policy::evaluate`]. Which rule wins is in `evaluate.rs`, whether a rule applies in
//! `matching.rs`, what a profile says where no rule does in `profile.rs`. [`Policy::explain`] tells the whole story of a verdict.
//! A [`Rule`] is proved by its own examples when it is loaded (`examples.rs`).
//!
//! [`effective_grant`] is what a manifest requests and the user gives; [`GrantedAccess`] answers a host function's questions by it.
//! [`Caps`] bound what may be spent.
//!
//! Use this crate to decide. Do not put I/O, a clock or a random source here: the same policy and the same call give the same
//! verdict for ever, which is what replay relies on. Asking the person, keeping accounts and confining processes are for others.

mod caps;
mod document;
mod evaluate;
mod examples;
mod explain;
mod grants;
mod matching;
mod policy;
mod profile;
mod read;
mod rule;

#[cfg(test)]
mod caps_tests;
#[cfg(test)]
mod docs_tests;
#[cfg(test)]
mod evaluate_tests;
#[cfg(test)]
mod explain_tests;
#[cfg(test)]
mod grants_tests;
#[cfg(test)]
mod matching_tests;
#[cfg(test)]
mod read_tests;
#[cfg(test)]
mod testing;

pub use holdfast_contract::manifest::Profile;

pub use caps::{Cap, Caps, Dollars};
pub use document::{Document, schema};
pub use explain::{ExplainOutcome, ExplainStep, Explanation};
pub use grants::{Grant, GrantedAccess, Tie, effective_grant, rooted};
pub use policy::{Policy, PolicyRequest, PolicyVerdict};
pub use profile::{Routing, Unattended};
pub use read::dollars as read_dollars;
pub use rule::{Condition, Example, Examples, Rule, Ruling};
