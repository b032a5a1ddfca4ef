//! Caps: hard bounds on what may be spent, in tokens, money and time, per session, per day and per extension.
//!
//! They are data here. The kernel stops a session at its limits, which [`Caps::narrow`] tightens; the code that counts usage
//! of a day or an extension asks for [`Cap::bounds`].

use std::collections::BTreeMap;

use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::manifest::Profile;
use holdfast_contract::message::{LimitKind, Limits, Spent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::profile;

/// All caps of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Caps {
    /// What one session may spend.
    #[serde(default, skip_serializing_if = "Cap::is_open")]
    pub session: Cap,
    /// What all sessions together may spend in a day.
    #[serde(default, skip_serializing_if = "Cap::is_open")]
    pub day: Cap,
    /// What the calls of an extension may spend in a day.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<ExtensionId, Cap>,
}

/// One cap. What is left out is not bounded by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cap {
    /// Tokens, read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dollars: Option<Dollars>,
    /// Time that turns take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<Millis>,
    /// Tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u32>,
}

/// Money in millionths of a dollar; written in dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Dollars {
    /// Millionths of a dollar.
    pub micros: u64,
}

/// What a session may spend under a profile that does not ask, where the policy names no bound.
const BOUND: Cap = Cap {
    tokens: Some(2_000_000),
    dollars: Some(Dollars { micros: 20_000_000 }),
    time_ms: Some(Millis(3_600_000)),
    tool_calls: None,
};

impl Cap {
    /// Whether it bounds nothing.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// Its bounds, each as the kind that names it, with what was spent of it.
    pub fn bounds(
        &self,
        [tokens, cost, time, calls]: [LimitKind; 4],
        spent: &Spent,
    ) -> [(LimitKind, Option<u64>, u64); 4] {
        [
            (tokens, self.tokens, spent.tokens),
            (cost, self.dollars.map(|dollars| dollars.micros), spent.cost_micros),
            (time, self.time_ms.map(|time| time.0), spent.time.0),
            (calls, self.tool_calls.map(u64::from), u64::from(spent.tool_calls)),
        ]
    }

    fn or(self, other: Cap) -> Self {
        Self {
            tokens: self.tokens.or(other.tokens),
            dollars: self.dollars.or(other.dollars),
            time_ms: self.time_ms.or(other.time_ms),
            tool_calls: self.tool_calls.or(other.tool_calls),
        }
    }
}

impl Caps {
    /// Whether nothing is bounded.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// The caps in force: a profile that does not ask has bounds for a session even where the policy names none.
    pub(crate) fn under(&self, profile: Profile) -> Self {
        let bound = if profile::goes_ahead(profile) { BOUND } else { Cap::default() };
        Self { session: self.session.or(bound), ..self.clone() }
    }

    /// Limits within what a session may spend.
    pub fn narrow(&self, limits: Limits) -> Limits {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        }
        let Cap { tokens, dollars, time_ms, tool_calls } = self.session;
        Limits {
            session_tokens: least(limits.session_tokens, tokens),
            session_cost_micros: least(limits.session_cost_micros, dollars.map(|dollars| dollars.micros)),
            session_time: least(limits.session_time, time_ms),
            session_tool_calls: least(limits.session_tool_calls, tool_calls),
            ..limits
        }
    }
}

impl Dollars {
    /// More than this is a typing error. Amounts up to it are exact.
    const MAX_DOLLARS: f64 = 1e9;
}

impl TryFrom<f64> for Dollars {
    type Error = &'static str;

    fn try_from(dollars: f64) -> Result<Self, Self::Error> {
        if !(0.0..=Self::MAX_DOLLARS).contains(&dollars) {
            return Err("an amount is a number of dollars from 0 to 1000000000");
        }
        Ok(Self { micros: (dollars * 1e6).round() as u64 })
    }
}

impl From<Dollars> for f64 {
    fn from(dollars: Dollars) -> Self {
        dollars.micros as f64 / 1e6
    }
}

impl JsonSchema for Dollars {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Dollars".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "An amount of money, in dollars.",
            "type": "number",
            "minimum": 0,
            "maximum": Self::MAX_DOLLARS
        })
    }
}
