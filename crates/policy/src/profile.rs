//! The profiles: what each says about a class of effects when no rule of the user's does.
//!
//! The table of effects is [`ruling`]. What else `safe` changes is decided where it applies: which rules count (`evaluate.rs`), whether an
//! answer is remembered (`policy.rs`), interfaces that are held by default (`grants/held.rs`), hosts that nobody is asked about
//! (`host/outside/consent.rs` of the runtime) and programs without confinement (`lanes.rs` of the application).

use holdfast_contract::ids::RuleName;
use holdfast_contract::manifest::Profile;
use holdfast_contract::tool::EffectClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rules::rule::Ruling;

/// What happens to a call that needs the user's answer when no user is present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unattended {
    /// It is denied immediately.
    #[default]
    Deny,
    /// It waits for an answer.
    Wait,
}

/// What a router's decision is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// It is advice.
    Advisory,
    /// It may be an order.
    Authoritative,
}

impl Unattended {
    pub(crate) const ALL: &'static [Unattended] = &[Self::Deny, Self::Wait];
}

impl Routing {
    pub(crate) const ALL: &'static [Routing] = &[Self::Advisory, Self::Authoritative];

    /// What a profile allows when the policy does not say.
    pub(crate) fn of(profile: Profile) -> Self {
        if goes_ahead(profile) { Self::Authoritative } else { Self::Advisory }
    }
}

/// Every class of effects, in the order of its discriminant.
pub(crate) const CLASSES: [EffectClass; 6] = [
    EffectClass::Pure,
    EffectClass::Read,
    EffectClass::Write,
    EffectClass::Exec,
    EffectClass::Network,
    EffectClass::Unknown,
];

/// Whether the profile runs side effects without asking.
pub(crate) fn goes_ahead(profile: Profile) -> bool {
    matches!(profile, Profile::FullAuto | Profile::Trusted)
}

/// The table: what a profile says about a class.
pub(crate) fn ruling(profile: Profile, class: EffectClass) -> Ruling {
    if goes_ahead(profile) || class.may_run_again() { Ruling::Allow } else { Ruling::Ask }
}

/// A profile's name as it is written.
pub(crate) fn name(profile: Profile) -> &'static str {
    match profile {
        Profile::Safe => "safe",
        Profile::Standard => "standard",
        Profile::FullAuto => "full-auto",
        Profile::Trusted => "trusted",
    }
}

/// A class's name as it is written.
pub(crate) fn class_name(class: EffectClass) -> &'static str {
    match class {
        EffectClass::Pure => "pure",
        EffectClass::Read => "read",
        EffectClass::Write => "write",
        EffectClass::Exec => "exec",
        EffectClass::Network => "network",
        EffectClass::Unknown => "unknown",
    }
}

/// The names of a profile's rules, one for each class: `standard/exec`.
pub(crate) fn rule_names(profile: Profile) -> [RuleName; 6] {
    CLASSES.map(|class| rule_name(profile, class))
}

/// The name of a profile's rule about a class.
pub(crate) fn rule_name(profile: Profile, class: EffectClass) -> RuleName {
    format!("{}/{}", name(profile), class_name(class)).into()
}

/// Whether a name is kept for a profile's own rules.
pub(crate) fn is_reserved(rule: &str) -> bool {
    rule.split_once('/')
        .is_some_and(|(first, _)| matches!(first, "safe" | "standard" | "full-auto" | "trusted"))
}
