//! `mcp.servers`: the MCP servers of a home. Each is an extension with a manifest that is made from what is set here, so that everything
//! else treats it like any other.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::manifest::FileGrant;
use holdfast_contract::tool::EffectClass;
use holdfast_yaml::{Field, Reported};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

type Result<T> = std::result::Result<T, Reported>;

/// What the ids of the extensions that are MCP servers begin with.
const ID_PREFIX: &str = "mcp-";
/// The longest name of a server.
const MAX_NAME_CHARS: usize = 32;

/// The MCP servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpSettings {
    /// The servers by name. The server `NAME` is the extension `mcp-NAME`, and the names of its tools begin with `NAME__`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, McpServerSettings>,
}

/// An MCP server: a program that is started, or an address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpServerSettings {
    /// The program that speaks MCP on its standard input and output. It is confined like every program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments. `${NAME}` stands for a secret here too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its variables. `${NAME}` stands for a secret, which the server is given thereby.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The address of a server that is reached by streamable HTTP, which is granted thereby.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers to send along. `${NAME}` stands for a secret.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// `false` leaves the server out.
    pub enabled: bool,
    /// Hosts that the program may connect to: `api.example.com`, `*.example.com`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<String>,
    /// Folders and files that the program may read, or write with `access: write`, besides its own data folder.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileGrant>,
    /// Globs of the tools that are offered, by the server's names for them; all if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Globs of the tools that are not offered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// What is different for a tool, by the server's name for it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, McpToolSettings>,
    /// Whether the server is told which folder the session works in.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub roots: bool,
    /// How long the server may take to start, in milliseconds; 30 seconds if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timeout_ms: Option<Millis>,
}

impl Default for McpServerSettings {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            url: None,
            headers: BTreeMap::new(),
            enabled: true,
            network: Vec::new(),
            files: Vec::new(),
            allow: None,
            deny: Vec::new(),
            tools: BTreeMap::new(),
            roots: false,
            start_timeout_ms: None,
        }
    }
}

/// What is different for a tool of an MCP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpToolSettings {
    /// `false` does not offer it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether a person is asked about each call where no rule of the policy decides.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ask: bool,
    /// What it does to the world; unknown if left out, whatever the server says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<EffectClass>,
    /// How long a call may take, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Millis>,
}

impl McpSettings {
    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// The id of the extension that a server is.
    pub fn extension(name: &str) -> ExtensionId {
        format!("{ID_PREFIX}{name}").as_str().into()
    }

    /// The servers that are enabled, as the manifests of extensions.
    pub fn manifests(&self) -> BTreeMap<ExtensionId, String> {
        let enabled = self.servers.iter().filter(|(_, server)| server.enabled);
        enabled.map(|(name, server)| (Self::extension(name), server.manifest(name))).collect()
    }
}

impl McpServerSettings {
    /// The secrets that it names.
    pub fn secrets(&self) -> BTreeSet<String> {
        let texts = self.env.values().chain(self.headers.values()).chain(&self.args);
        texts.flat_map(|text| references(text)).collect()
    }

    /// The manifest of the extension. JSON is YAML.
    fn manifest(&self, name: &str) -> String {
        let mcp = match &self.url {
            Some(url) => json!({ "url": url, "headers": self.headers }),
            None => {
                json!({ "command": [self.command.as_deref().unwrap_or_default()], "args": self.args, "env": self.env })
            }
        };
        let qualified = |tool: &str| format!("{name}__{tool}");
        let hint = |tool: &McpToolSettings| {
            let mut hint = Map::new();
            hint.extend(tool.effects.map(|effects| ("effects".to_owned(), json!(effects))));
            hint.extend(tool.timeout_ms.map(|timeout| ("timeout_ms".to_owned(), json!(timeout))));
            Value::Object(hint)
        };
        let tools: Map<String, Value> =
            self.tools.iter().map(|(tool, set)| (qualified(tool), hint(set))).collect();
        let ask: Vec<String> =
            self.tools.iter().filter(|(_, set)| set.ask).map(|(tool, _)| qualified(tool)).collect();
        let mut network = self.network.clone();
        network.extend(self.url.as_deref().and_then(host_of));
        json!({
            "id": Self::id(name),
            "name": name,
            "description": format!("The MCP server {name}."),
            "mcp": mcp,
            "grants": { "network": network, "files": self.files, "secrets": self.secrets() },
            "tools": tools,
            "policy": { "ask": ask },
            "config": self.config(name),
        })
        .to_string()
    }

    fn id(name: &str) -> String {
        McpSettings::extension(name).to_string()
    }

    /// What the lane is told.
    fn config(&self, name: &str) -> Value {
        let disabled = self.tools.iter().filter(|(_, set)| set.enabled == Some(false));
        let deny: Vec<String> =
            self.deny.iter().cloned().chain(disabled.map(|(tool, _)| tool.clone())).collect();
        let mut config = json!({ "prefix": name, "deny": deny, "roots": self.roots });
        if let Value::Object(fields) = &mut config {
            fields.extend(self.allow.as_ref().map(|allow| ("allow".to_owned(), json!(allow))));
            fields.extend(self.start_timeout_ms.map(|time| ("start_timeout_ms".to_owned(), json!(time))));
        }
        config
    }
}

/// The names in `${NAME}`.
fn references(text: &str) -> Vec<String> {
    let parts = text.split("${").skip(1);
    parts.filter_map(|part| part.split_once('}')).map(|(name, _)| name.to_owned()).collect()
}

/// The host of an address with its port, as a grant names it.
fn host_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let place = authority.rsplit('@').next()?;
    let has_port = place.rsplit(']').next()?.contains(':');
    let port = if scheme == "http" { 80 } else { 443 };
    Some(if has_port { place.to_owned() } else { format!("{place}:{port}") })
}

pub(super) fn mcp(field: &Field<'_>) -> Result<McpSettings> {
    field.object(|object| {
        let servers = object.defaulted("servers", Vec::new(), |field| field.entries(server));
        Ok(McpSettings { servers: servers?.into_iter().collect() })
    })
}

fn server(name: &str, field: &Field<'_>) -> Result<McpServerSettings> {
    let goes_on = |sign: char| matches!(sign, 'a'..='z' | '0'..='9' | '-' | '_');
    let begins = name.starts_with(|sign: char| sign.is_ascii_lowercase());
    if !begins || !name.chars().all(goes_on) || name.len() > MAX_NAME_CHARS || name.contains("__") {
        let help = "Use lower-case letters, digits, `-` and single `_`, beginning with a letter.";
        return Err(field.reject(format!("an MCP server cannot be called `{name}`"), help));
    }
    field.object(|object| {
        object.advise("type", "Leave it out: a server with `command` is started, one with `url` is reached.");
        object.advise("disabled", "Did you mean `enabled: false`?");
        let mut written = field.json_map()?;
        if let Some(Value::Array(files)) = written.get_mut("files") {
            // A path alone asks for reading.
            for file in files.iter_mut().filter(|file| file.is_string()) {
                *file = json!({ "path": file });
            }
        }
        for key in KEYS {
            object.field(key);
        }
        let read: std::result::Result<McpServerSettings, _> = serde_json::from_value(Value::Object(written));
        let server = read.map_err(|error| {
            let what = format!("{} cannot be used: {error}", field.subject());
            field.reject(what, "`holdfast docs settings` lists what can be set.")
        })?;
        let is_address = |url: &String| url.starts_with("https://") || url.starts_with("http://");
        match (&server.command, &server.url) {
            (Some(command), None) if !command.trim().is_empty() => Ok(server),
            (None, Some(url)) if is_address(url) => Ok(server),
            (None, Some(url)) => {
                let help = "Write one that begins with `https://` or `http://`.";
                Err(field.reject(format!("`{url}` is not an address"), help))
            }
            (Some(_), Some(_)) => {
                let help = "Keep `command` to start a server, or `url` to reach one.";
                Err(field.reject(format!("{} has both `command` and `url`", field.subject()), help))
            }
            _ => {
                let help =
                    "Add `command: npx` with `args` to start a server, or `url: https://…` to reach one.";
                Err(object.missing("command", help))
            }
        }
    })
}

/// The keys of a server.
const KEYS: [&str; 13] = [
    "command",
    "args",
    "env",
    "url",
    "headers",
    "enabled",
    "network",
    "files",
    "allow",
    "deny",
    "tools",
    "roots",
    "start_timeout_ms",
];
