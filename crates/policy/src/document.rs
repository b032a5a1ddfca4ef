//! A policy as data: what `policy.yaml` says, and what is stored under the policy's digest.

use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::manifest::Profile;
use holdfast_contract::message::Origin;
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
    /// How long a question waits for an answer where no user is present, in milliseconds; a day if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub answer_within_ms: Option<Millis>,
    /// The users of channels who are the owner of the home, and answer approvals and questions. Left out, there are none: only the
    /// terminal and clients of the home answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<OwnerIdentity>,
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

/// A user of a channel who is the owner of the home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnerIdentity {
    /// The channel: the id of its extension.
    pub channel: ExtensionId,
    /// The user, in the channel's own words. It is compared exactly.
    pub user: String,
}

impl OwnerIdentity {
    /// Where the sessions of this user on this channel come from.
    pub fn origin(&self) -> Origin {
        Origin::channel(&self.channel, &self.user)
    }
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
            answer_within_ms: None,
            owners: Vec::new(),
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
