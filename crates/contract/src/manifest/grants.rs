//! What an extension asks for, in the same words in which a policy gives it.

use std::borrow::Cow;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::ids::ExtensionId;

/// What reaches outside of the sandbox. A manifest requests it; what counts is what the user's policy gives
/// of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grants {
    /// Hosts to connect to: `api.example.com`, `*.example.com`, `localhost:8080`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<String>,
    /// Ports of this machine's loopback to listen on: `8080` or `127.0.0.1:8080`, from 1024. Programs and Python files only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listen: Vec<ListenPort>,
    /// Folders and files outside of its own data folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileGrant>,
    /// Secrets, by name. Those listed under `secrets` need not be repeated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Environment variables of the host, each by its whole name. A program has them in its own environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
    /// Extensions to call. Those listed under `depends_on` need not be repeated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<ExtensionId>,
    /// Interfaces of the host, such as `events`, `ui` or `agents`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
}

impl Grants {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The port of the gateway in the namespace of a program, where nothing else listens.
pub const GATEWAY_PORT: u16 = 3128;

/// A port of this machine's loopback that an extension may listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct ListenPort(u16);

impl ListenPort {
    /// The first port that is not reserved for the system.
    const FIRST: u16 = 1024;

    /// The number.
    pub fn number(self) -> u16 {
        self.0
    }

    /// Where clients on this machine reach it.
    pub fn address(self) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.0)
    }
}

impl TryFrom<u16> for ListenPort {
    type Error = String;

    fn try_from(number: u16) -> Result<Self, String> {
        if number < Self::FIRST {
            return Err(format!("ports below {} are reserved for the system", Self::FIRST));
        }
        if number == GATEWAY_PORT {
            return Err(format!("port {GATEWAY_PORT} is that of the gateway to the network"));
        }
        Ok(Self(number))
    }
}

impl From<ListenPort> for u16 {
    fn from(port: ListenPort) -> Self {
        port.0
    }
}

impl FromStr for ListenPort {
    type Err = String;

    /// Reads `8080` or `127.0.0.1:8080`; the error says what is wrong with another text.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = match text.rsplit_once(':') {
            None => text,
            Some(("127.0.0.1" | "localhost", number)) => number,
            Some((address, _)) => {
                return Err(format!("`{address}` is not 127.0.0.1, and nothing else can be listened on"));
            }
        };
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number: Option<u16> = number.parse().ok().filter(|_| digits);
        number.ok_or_else(|| "a port is a number from 1024 to 65535".to_owned())?.try_into()
    }
}

impl fmt::Display for ListenPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl JsonSchema for ListenPort {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ListenPort".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": Self::FIRST, "maximum": u16::MAX },
                { "type": "string", "pattern": "^(127\\.0\\.0\\.1:|localhost:)?[0-9]{4,5}$" },
            ]
        })
    }
}

/// A folder with everything in it, or a file. A path alone asks for reading.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = super::model::or_text)]
pub struct FileGrant {
    /// The path: absolute, or from `~`, or from the folder that Holdfast works in.
    pub path: String,
    /// What may be done there.
    #[serde(default)]
    pub access: Access,
}

/// What may be done with files.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Read.
    #[default]
    Read,
    /// Read, change, create and remove.
    Write,
}

impl Access {
    /// Every access.
    pub const ALL: &'static [Access] = &[Self::Read, Self::Write];
}

/// What the author advises the user's policy to do. A hint can make things stricter, never looser.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyHints {
    /// Globs of tools that a person is asked about where no rule of the user's decides, in every profile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<String>,
    /// Why the extension needs its grants; `holdfast ext grant` shows it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl PolicyHints {
    /// Whether nothing is advised.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The profiles that a policy can be in, the strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// No side effects without a person.
    Safe,
    /// Asks, and remembers the answers.
    Standard,
    /// Goes ahead within bounds, and logs.
    FullAuto,
    /// Goes ahead like `full-auto`, and loads native plugins.
    Trusted,
}

impl Profile {
    /// Every profile, the strictest first.
    pub const ALL: &'static [Profile] = &[Self::Safe, Self::Standard, Self::FullAuto, Self::Trusted];
}
