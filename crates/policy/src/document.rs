//! A policy as data: what `policy.yaml` says, and what is stored under the policy's digest.

use holdfast_contract::manifest::Profile;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::caps::Caps;
use crate::grants::Grant;
use crate::profile::{Routing, Unattended};
use crate::rules::rule::Rule;

/// Everything a policy says. Its canonical JSON is what is hashed and stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Holdfast policy")]
pub struct Document {
    /// What counts where no rule says otherwise.
    #[serde(default = "standard")]
    pub profile: Profile,
    /// What happens to a question when no user is present.
    #[serde(default)]
    pub unattended: Unattended,
    /// What a router's decision is worth; left out, the profile says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<Routing>,
    /// The rules. Among those that apply, `deny` wins, then `ask`, then `allow`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// What is given to extensions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// What may be spent.
    #[serde(default, skip_serializing_if = "Caps::is_open")]
    pub caps: Caps,
}

fn standard() -> Profile {
    Profile::Standard
}

impl Document {
    /// A profile and nothing else.
    pub fn of(profile: Profile) -> Self {
        Self {
            profile,
            unattended: Unattended::default(),
            routing: None,
            rules: Vec::new(),
            grants: Vec::new(),
            caps: Caps::default(),
        }
    }
}

/// The JSON Schema of `policy.yaml`.
pub fn schema() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Document>().to_value()
}
