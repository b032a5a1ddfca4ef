//! `manifest.yaml`: who an extension is, what it needs and how it is configured.
//!
//! [`Manifest`] is its content, [`parse`] reads it and reports all problems of the file, [`lane()`] selects the
//! lane that runs it. Roles are not in a manifest: they follow from the functions that the extension exports.
//! [`yaml`] reads YAML files under error codes; settings and policies use it too. Nothing here opens a file.

mod agent;
mod command;
mod grants;
mod lane;
mod model;
mod read;
mod user_settings;
pub mod yaml;

#[cfg(test)]
mod lane_tests;
#[cfg(test)]
mod manifest_tests;
#[cfg(test)]
mod problems_tests;
#[cfg(test)]
mod yaml_tests;

use std::path::Path;

pub use self::command::{ProgramCommand, Transport};
pub use self::grants::{Access, FileGrant, GATEWAY_PORT, Grants, ListenPort, PolicyHints, Profile};
pub use self::lane::{LaneKind, lane};
pub use self::model::{
    AgentLimits, AgentSection, DescriptorHint, Events, HandlerSpec, HookHint, Manifest, ManifestSubscription,
    McpServer, Publication, Schedule, Scope, SecretNeed, ToolHint,
};
pub use self::read::matcher as read_matcher;
pub use self::read::{interface, listen_port, variable};
pub use self::user_settings::{ENABLED, REPLACE, enabled_by_user, own_settings, replaces_built_in};
use self::yaml::{Codes, Format, YamlRead, YamlRejected, YamlSource};
use crate::problem::{Code, Problem};

/// Ids that no extension may have: the folders of single files, and the name of the built-in tools in
/// `uses_tools`.
pub const RESERVED_IDS: &[&str] = &["tools", "channels", "core_tools"];

/// The folders of a home whose entries decide about agents, from its root. An entry that is a link decides where the link leads.
pub const DECIDING_FOLDERS: &[&str] =
    &["", "config", "prompts", "extensions", "extensions/tools", "extensions/channels"];

/// How a manifest is read.
pub const FORMAT: Format = Format {
    name: "manifest",
    max_bytes: 256 * 1024,
    codes: Codes {
        unreadable: Code::ManifestUnreadable,
        syntax: Code::ManifestSyntax,
        wrong_type: Code::ManifestType,
        unknown_field: Code::ManifestUnknownField,
        duplicate_key: Code::ManifestDuplicateKey,
        missing_field: Code::ManifestMissingField,
        value: Code::ManifestValue,
        too_large: Code::ManifestTooLarge,
    },
};

/// A manifest that could be read.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// What it says.
    pub manifest: Manifest,
    /// What is odd about it; none of it stops the extension.
    pub warnings: Vec<Problem>,
    /// Where its fields stand, for problems that only show up at loading: a missing dependency, a bad cron
    /// expression.
    pub source: YamlSource,
}

impl From<YamlRead<Manifest>> for Parsed {
    fn from(read: YamlRead<Manifest>) -> Self {
        Self { manifest: read.value, warnings: read.warnings, source: read.source }
    }
}

/// Reads a manifest. The file's name is for messages only.
pub fn parse(file: &Path, text: &str) -> Result<Parsed, YamlRejected> {
    yaml::read(&FORMAT, file, text, read::manifest).map(Parsed::from)
}

/// Reads a manifest from the disk.
pub fn parse_bytes(file: &Path, bytes: &[u8]) -> Result<Parsed, YamlRejected> {
    yaml::read_bytes(&FORMAT, file, bytes, read::manifest).map(Parsed::from)
}
