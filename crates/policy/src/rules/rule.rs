//! A rule as a user writes it: when it applies, what it decides, why, and examples that prove it.
//!
//! How a rule is compared with a call is in [`crate::rules::matching`]; which of several rules wins is in [`crate::evaluate`].

use std::collections::BTreeMap;

use holdfast_contract::ids::{AgentId, ExtensionId, RuleName, ToolName};
use holdfast_contract::manifest::Profile;
use holdfast_contract::tool::EffectClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a rule decides, the strongest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// The call may run.
    Allow,
    /// A person decides.
    Ask,
    /// The call may not run.
    Deny,
}

impl Ruling {
    pub(crate) const ALL: &'static [Ruling] = &[Self::Allow, Self::Ask, Self::Deny];

    /// Whether it can only make things stricter.
    pub(crate) fn narrows(self) -> bool {
        self != Self::Allow
    }
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name, unique in the policy. Every decision names the rule that made it.
    pub name: RuleName,
    /// What it decides.
    pub decision: Ruling,
    /// When it applies; `{}` is always.
    #[serde(rename = "match")]
    pub condition: Condition,
    /// Exceptions: it does not apply where one of these does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<Condition>,
    /// The profiles under which it counts. Left out, it counts under all of them; but an `allow` rule counts under `safe` only
    /// if it says so here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<Profile>,
    /// Why; the model and the user are told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Calls that it must and must not apply to. The policy is refused when one does not hold.
    #[serde(default, skip_serializing_if = "Examples::is_empty")]
    pub examples: Examples,
}

/// A conjunction: everything that is given must match, and what is left out matches anything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Globs of which one must match the tool's name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// JSON pointers into the arguments (`/path`, `/options/mode`), each with a glob that the value there must match. Text is
    /// matched as it is, anything else as its JSON. A pointer that leads nowhere does not match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
    /// Globs of which one must match the session's origin (`cli`, `telegram`, `schedule/…`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// Globs of which one must match the user; where the channel knows none, the user is the empty text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    /// Globs of which one must match the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Globs of which one must match the extension whose implementation would run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Classes of effects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectClass>,
}

impl Condition {
    /// Whether it matches everything.
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }
}

/// Calls that prove a rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Examples {
    /// The rule must apply to each of these.
    #[serde(rename = "match", default, skip_serializing_if = "Vec::is_empty")]
    pub matching: Vec<Example>,
    /// The rule must apply to none of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_match: Vec<Example>,
}

impl Examples {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.matching.is_empty() && self.not_match.is_empty()
    }
}

/// A call, as far as it matters. What is left out is not looked at; a call without `arguments` has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The tool.
    pub tool: ToolName,
    /// Its arguments.
    #[serde(default = "no_arguments", skip_serializing_if = "is_empty")]
    pub arguments: Value,
    /// The session's origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<ExtensionId>,
    /// What the tool does to the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<EffectClass>,
}

/// The arguments of a call without any.
pub(crate) fn no_arguments() -> Value {
    Value::Object(Default::default())
}

fn is_empty(arguments: &Value) -> bool {
    arguments.as_object().is_some_and(|fields| fields.is_empty())
}
