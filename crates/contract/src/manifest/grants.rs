//! What an extension asks for, in the same words in which a policy gives it.

use schemars::JsonSchema;
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
