//! Policy: who may do what. Gate 0 of every tool call, and what extensions are granted.
//!
//! Start at [`Policy`]: it is read from `policy.yaml` (`read`, `document`) or built from a [`Profile`], is stored under its digest,
//! and judges a [`PolicyRequest`] with [`Policy::evaluate`].
//!
//! - `evaluate`: which rule wins; `explain`: how a verdict was reached
//! - `rules/`: rules, whether one applies to a call, and the examples that a rule is checked against when it is loaded
//! - `profile`: the verdict where no rule applies
//! - `grants`: what a manifest requests and the user grants ([`effective_grant`]), and the access that follows ([`GrantedAccess`])
//! - `caps`: limits on spending ([`Caps`])
//!
//! Use this crate to decide. Do not put I/O, a clock or a random source here: the same policy and the same call always give the
//! same verdict, which replay relies on. Asking the user, accounting and confining processes are in other crates.

mod caps;
mod document;
mod evaluate;
mod explain;
mod grants;
mod policy;
mod profile;
mod read;
mod rules;

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
mod read_tests;
#[cfg(test)]
mod testing;

pub use holdfast_contract::manifest::Profile;

pub use caps::{Cap, Caps, Dollars};
pub use document::{Document, OwnerIdentity, schema};
pub use explain::{ExplainOutcome, ExplainStep, Explanation};
pub use grants::{Grant, GrantedAccess, HeldInterfaces, Tie, effective_grant, granted_to, rooted};
pub use policy::{Policy, PolicyRequest, PolicyVerdict};
pub use profile::{Routing, Unattended};
pub use read::dollars as read_dollars;
pub use rules::rule::{Condition, Example, Examples, Rule, Ruling};
