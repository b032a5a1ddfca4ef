//! Identifiers as newtypes, so that a tool's name is never taken for a session's.
//!
//! Text ids are cheap to clone (one reference count). Nothing here creates an id: ids come from outside or from the kernel's
//! own counters, never from a clock or a random source.

use std::fmt;
use std::sync::{Arc, LazyLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::{Code, Problem};
use crate::text::is_invisible;

/// The most characters of a session's id.
const MAX_SESSION_ID_CHARS: usize = 128;

macro_rules! text_ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }
        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    )+};
}

text_ids! {
    /// A stream of frames: a session's id, `system`, or a partition of the bus.
    StreamId,
    /// An extension, by the name of its folder.
    ExtensionId,
    /// A tool, by the name a model calls it by.
    ToolName,
    /// One hook of one extension: `extension/point/index`; `policy` is gate 0.
    HookId,
    /// An agent that can own a session.
    AgentId,
    /// A configured model.
    ModelName,
    /// A rule of a policy.
    RuleName,
    /// A registry's kind: `tool`, `guardrail`, `persona`, …; the set is open.
    RegistryKind,
    /// A descriptor within its kind.
    DescriptorId,
    /// A topic of the bus.
    Topic,
    /// One schedule of one extension: `extension/name`.
    ScheduleId,
}

impl StreamId {
    /// The one stream that records loading, health, policy and anchors.
    pub fn system() -> Self {
        Self::from("system")
    }

    /// Whether this is the system stream.
    pub fn is_system(&self) -> bool {
        self.as_str() == "system"
    }

    /// A partition of the bus: `bus.00`, `bus.01` …
    pub fn bus(partition: u8) -> Self {
        Self::from(format!("bus.{partition:02}"))
    }

    /// The partition of the bus that this is, if it is one.
    pub fn bus_partition(&self) -> Option<u8> {
        let digits = self.as_str().strip_prefix("bus.")?;
        if digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return digits.parse().ok();
        }
        None
    }

    /// Whether this is a conversation: neither the system stream nor a partition of the bus.
    pub fn is_session(&self) -> bool {
        !self.is_system() && self.bus_partition().is_none()
    }

    /// Fails unless a new session may have this id: a short text in which every character is seen, and no other stream's.
    pub fn check_session(&self) -> Result<(), Problem> {
        let unseen = |c: char| c.is_control() || is_invisible(c) || (c.is_whitespace() && c != ' ');
        let id = self.as_str();
        let what = match id {
            "" => "the id of a session is empty".to_owned(),
            _ if id.chars().count() > MAX_SESSION_ID_CHARS => {
                format!("the id of a session has more than {MAX_SESSION_ID_CHARS} characters")
            }
            _ if id.contains(unseen) || id.trim() != id => {
                format!("the id of a session has characters that are not seen: {id:?}")
            }
            _ if !self.is_session() => format!("`{id}` is the name of another stream"),
            _ => return Ok(()),
        };
        Err(Problem::new(Code::SessionId, what))
    }
}

impl HookId {
    /// Gate 0: the policy itself.
    pub const POLICY: &'static str = "policy";

    /// Gate 0 itself, shared by all.
    pub fn policy() -> Self {
        static POLICY: LazyLock<HookId> = LazyLock::new(|| HookId::from(HookId::POLICY));
        POLICY.clone()
    }

    /// Whether this is gate 0.
    pub fn is_policy(&self) -> bool {
        self.as_str() == Self::POLICY
    }
}

/// A frame's place in its stream: 0, 1, 2 … without gaps.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The place after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A moment or a span in milliseconds; a moment counts from the Unix epoch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// This moment moved forward.
    pub fn plus(self, span: Millis) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The span from an earlier moment; zero when the clock went backwards.
    pub fn since(self, earlier: Millis) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// Exponential backoff: this span, doubled for each earlier retry, up to `max`.
    pub fn backoff(self, earlier_retries: u32, max: Millis) -> Self {
        let factor = 1_u64.checked_shl(earlier_retries).unwrap_or(u64::MAX);
        Self(self.0.saturating_mul(factor)).min(max)
    }
}

/// Which activation of an extension: counts up each time its code, settings or grants change.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Generation(pub u64);

/// A tool call within its session: the turn's number and the call's index in that turn. Written `3.1`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    /// The turn, counted from 1.
    pub turn: u32,
    /// The call within the turn, counted from 1 over all its rounds.
    pub index: u32,
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.turn, self.index)
    }
}

impl fmt::Debug for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for CallId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Nearly every frame of a call has its id, and formatting it would cost more than the rest of the frame.
        let mut text = [b'.'; 21];
        let index = digits(&mut text, self.index);
        let turn = digits(&mut text[..index - 1], self.turn);
        serializer.serialize_str(std::str::from_utf8(&text[turn..]).unwrap_or_default())
    }
}

/// Writes a number at the end of a text that has room for it, and says where it begins.
fn digits(text: &mut [u8], mut number: u32) -> usize {
    let mut start = text.len();
    loop {
        start -= 1;
        text[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return start;
        }
    }
}

impl<'de> Deserialize<'de> for CallId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let parsed = text
            .split_once('.')
            .and_then(|(turn, index)| Some(CallId { turn: turn.parse().ok()?, index: index.parse().ok()? }));
        parsed.ok_or_else(|| serde::de::Error::custom("a call id is written `turn.index`"))
    }
}

impl JsonSchema for CallId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CallId".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9]+\\.[0-9]+$" })
    }
}
