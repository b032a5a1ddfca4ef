//! What two Holdfasts say to each other about tools: JSON-RPC 2.0, a message to a line, over TCP. The caller's first request is
//! `remote.hello` with its token; nothing else is answered before.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;
use crate::ids::ToolName;
use crate::protocol::ToolSheet;

/// The version of these messages. Those of another version do not understand each other.
pub const REMOTE_PROTOCOL: &str = "0.1";

/// The longest line that is sent, in bytes.
pub const REMOTE_LINE_BYTES: usize = 8 << 20;

/// What the caller asks.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", content = "params")]
pub enum RemoteRequest {
    /// Who is calling; answered by a [`RemoteWelcome`].
    #[serde(rename = "remote.hello")]
    Hello(RemoteHello),
    /// Run a tool; answered by its result.
    #[serde(rename = "remote.call")]
    Call(RemoteCall),
}

/// Who is calling. It is not printed: it has the token.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoteHello {
    /// The version.
    pub protocol: String,
    /// What the two share.
    pub token: String,
}

/// A call of a tool.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoteCall {
    /// The tool, by the name that it is offered under.
    pub tool: ToolName,
    /// Its arguments.
    pub arguments: Value,
}

/// What is offered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoteWelcome {
    /// The version.
    pub protocol: String,
    /// The tools, in the order of their names.
    pub tools: Vec<ToolSheet>,
}

impl RemoteWelcome {
    /// The digest of the definitions of all tools.
    pub fn definitions(&self) -> Digest {
        Digest::of_json(&self.tools).unwrap_or_default()
    }
}
