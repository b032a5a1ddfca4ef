//! `packs`: packages of the npm registry and folders with packs for Node. Each is an extension with a manifest that is made from what is
//! set here, so that everything else treats it like any other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::FileGrant;
use holdfast_yaml::{Field, Reported};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::McpToolSettings;

type Result<T> = std::result::Result<T, Reported>;

/// What the ids of the extensions that are packs of the settings begin with.
const ID_PREFIX: &str = "pack-";
/// What the names of published packs begin with, and their ids do not.
const NAME_PREFIX: &str = "agentos-ext-";
/// The longest identifier of a pack.
const MAX_IDENTIFIER_CHARS: usize = 48;

/// A pack: a package of the registry, or files on this machine. Packs are loaded in the order of the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PackSettings {
    /// The name of an npm package, such as `@scope/name`, which is installed once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The range of its versions, such as `^1.2`; the latest if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// A file with a pack, in place of a package: an absolute path, or one from the home folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// A folder with a pack, in place of a package: an absolute path, or one from the home folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The name by which the pack is known here; it is the extension `pack-NAME`. It follows from the package or the path if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identifier: Option<String>,
    /// The priority of what it registers; of several with the same kind and id, the highest is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// `false` leaves the pack out.
    pub enabled: bool,
    /// Options of the pack. In `options.secrets` each id of the pack has the name of a secret of this home, which the pack is given thereby.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
    /// Hosts that the pack may connect to: `api.example.com`, `*.example.com`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<String>,
    /// Folders and files that the pack may read, or write with `access: write`, besides its own data folder.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileGrant>,
    /// Environment variables that the pack gets, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
    /// Further secrets that the pack gets, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// What the names of all its tools begin with, before `__`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// What is different for a tool, by the pack's name for it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, McpToolSettings>,
    /// Whether every turn waits for the pack to start, also the first time. Without it a turn waits only for packs that are known to judge.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

impl Default for PackSettings {
    fn default() -> Self {
        Self {
            package: None,
            version: None,
            module: None,
            folder: None,
            identifier: None,
            priority: None,
            enabled: true,
            options: Map::new(),
            network: Vec::new(),
            files: Vec::new(),
            environment: Vec::new(),
            secrets: Vec::new(),
            prefix: None,
            tools: BTreeMap::new(),
            required: false,
        }
    }
}

/// The packs that are enabled, as the manifests of extensions. Paths begin at this folder.
pub(super) fn manifests(packs: &[PackSettings], folder: &Path) -> BTreeMap<ExtensionId, String> {
    let enabled = packs.iter().enumerate().filter(|(_, pack)| pack.enabled);
    enabled.map(|(order, pack)| (pack.extension(), pack.manifest(order, folder))).collect()
}

impl PackSettings {
    /// The id of the extension that it is.
    pub fn extension(&self) -> ExtensionId {
        format!("{ID_PREFIX}{}", self.name()).as_str().into()
    }

    /// Where it comes from, as the user wrote it.
    fn source(&self) -> &str {
        let all = [&self.package, &self.module, &self.folder];
        all.into_iter().find_map(|source| source.as_deref()).unwrap_or_default()
    }

    /// The name by which it is known.
    fn name(&self) -> String {
        if let Some(identifier) = &self.identifier {
            return identifier.clone();
        }
        let source = self.source().trim_end_matches('/');
        let last = source.rsplit('/').next().unwrap_or(source);
        let is_file = self.module.is_some();
        // A range of versions may follow the name.
        let last = last.split('@').next().unwrap_or(last);
        let last = if is_file { last.split('.').next().unwrap_or(last) } else { last };
        let letter = |letter: char| match letter.to_ascii_lowercase() {
            letter if letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_') => letter,
            _ => '-',
        };
        let name: String = last.chars().map(letter).take(MAX_IDENTIFIER_CHARS).collect();
        name.strip_prefix(NAME_PREFIX).unwrap_or(&name).to_owned()
    }

    /// The secrets of its options: the names of secrets of this home, by the pack's ids.
    fn named_secrets(&self) -> BTreeMap<String, String> {
        let Some(Value::Object(secrets)) = self.options.get("secrets") else { return BTreeMap::new() };
        let named = secrets.iter().filter_map(|(id, name)| Some((id.clone(), secret_name(name.as_str()?)?)));
        named.collect()
    }

    /// The manifest of the extension. JSON is YAML.
    fn manifest(&self, order: usize, folder: &Path) -> String {
        let path = self.module.as_ref().or(self.folder.as_ref()).map(|path| folder.join(path));
        let package = match &path {
            Some(path) => path.display().to_string(),
            None => self.package.clone().unwrap_or_default(),
        };
        let hint = |tool: &McpToolSettings| {
            let mut hint = Map::new();
            hint.extend(tool.effects.map(|effects| ("effects".to_owned(), json!(effects))));
            hint.extend(tool.timeout_ms.map(|timeout| ("timeout_ms".to_owned(), json!(timeout))));
            Value::Object(hint)
        };
        let tools: Map<String, Value> =
            self.tools.iter().map(|(tool, set)| (tool.clone(), hint(set))).collect();
        let ask: Vec<&String> = self.tools.iter().filter(|(_, set)| set.ask).map(|(tool, _)| tool).collect();
        let mut manifest = json!({
            "id": self.extension(),
            "name": self.name(),
            "description": format!("The pack {}.", self.source()),
            "package": package,
            "grants": {
                "network": self.network,
                "files": self.files,
                "environment": self.environment,
                "secrets": self.granted_secrets(),
            },
            "tools": tools,
            "policy": { "ask": ask },
            "config": { "pack": self.section(order) },
        });
        if let Some(priority) = self.priority {
            manifest["priority"] = priority.into();
        }
        manifest.to_string()
    }

    /// The secrets that it is given, by name.
    pub fn granted_secrets(&self) -> BTreeSet<String> {
        self.named_secrets().into_values().chain(self.secrets.iter().cloned()).collect()
    }

    /// What the pack is told.
    fn section(&self, order: usize) -> Value {
        let mut options = self.options.clone();
        let secrets = self.named_secrets();
        options.remove("secrets");
        let disabled = self.tools.iter().filter(|(_, set)| set.enabled == Some(false));
        let disabled: Vec<&String> = disabled.map(|(tool, _)| tool).collect();
        json!({
            "identifier": self.name(),
            "order": order,
            "priority": self.priority,
            "options": options,
            "secrets": secrets,
            "package": self.package,
            "version": self.version,
            "prefix": self.prefix,
            "disabled": disabled,
            "required": self.required,
        })
    }
}

/// The name of a secret that stands for its value: `NAME` or `${NAME}`.
fn secret_name(text: &str) -> Option<String> {
    let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
    let fits = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    let begins = name.starts_with(|first: char| first.is_ascii_uppercase() || first == '_');
    (begins && name.chars().all(fits)).then(|| name.to_owned())
}

pub(super) fn packs(field: &Field<'_>) -> Result<Vec<PackSettings>> {
    let mut known: BTreeSet<ExtensionId> = BTreeSet::new();
    field.each(|field| {
        let pack = pack(field)?;
        if !known.insert(pack.extension()) {
            let what = format!("another pack is known as `{}` too", pack.name());
            return Err(field.reject(what, "Give one of them another `identifier`."));
        }
        Ok(pack)
    })
}

fn pack(field: &Field<'_>) -> Result<PackSettings> {
    field.object(|object| {
        object.advise("factory", "Name the file that has the pack: `module: ./pack.mjs`.");
        object.advise("disabled", "Did you mean `enabled: false`?");
        object.advise("path", "Did you mean `folder`, or `module` for a file?");
        object.advise("id", "Did you mean `identifier`?");
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
        let read: std::result::Result<PackSettings, _> = serde_json::from_value(Value::Object(written));
        let pack = read.map_err(|error| {
            let what = format!("{} cannot be used: {error}", field.subject());
            field.reject(what, "`holdfast docs settings` lists what can be set.")
        })?;
        checked(pack, field)
    })
}

/// Whether this can be the name of a package, after which a range of versions may follow.
fn is_package_name(text: &str) -> bool {
    let after_scope = text.strip_prefix('@').unwrap_or(text);
    let name = after_scope.split('@').next().unwrap_or(after_scope);
    let letters = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.' | '~' | '/');
    !text.starts_with(['.', '/']) && name.chars().all(letters)
}

/// A pack with one source, a name, and no secret in it.
fn checked(pack: PackSettings, field: &Field<'_>) -> Result<PackSettings> {
    let sources = [&pack.package, &pack.module, &pack.folder];
    let named: Vec<&String> = sources.into_iter().flatten().collect();
    let [source] = named.as_slice() else {
        let help = "Name one of them: `package: \"@scope/name\"`, `module: ./pack.mjs` or `folder: ./pack`.";
        return Err(field.reject(format!("{} needs `package`, `module` or `folder`", field.subject()), help));
    };
    if source.trim().is_empty() || source.starts_with('~') {
        let help = "Write an absolute path, or one from the home folder.";
        return Err(field.reject(format!("`{source}` is not where a pack can be found"), help));
    }
    if pack.package.as_ref().is_some_and(|name| !is_package_name(name)) {
        let help = "Use `folder` for a folder and `module` for a file.";
        return Err(field.reject(format!("`{source}` is not the name of a package"), help));
    }
    let name = pack.name();
    let goes_on = |sign: char| matches!(sign, 'a'..='z' | '0'..='9' | '-' | '_');
    if name.is_empty() || !name.chars().all(goes_on) || name.len() > MAX_IDENTIFIER_CHARS {
        let help = "Use lower-case letters, digits, `-` and `_` in `identifier`.";
        return Err(field.reject(format!("a pack cannot be known as `{name}`"), help));
    }
    let letters = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_');
    if pack.prefix.as_ref().is_some_and(|prefix| prefix.is_empty() || !prefix.chars().all(letters)) {
        let what = "`prefix` has other signs than letters, digits, `-` and `_`";
        return Err(field.reject(what, "Choose a short one, such as `my`."));
    }
    if let Some(Value::Object(secrets)) = pack.options.get("secrets")
        && let Some((id, _)) = secrets.iter().find(|(_, name)| name.as_str().and_then(secret_name).is_none())
    {
        let what = format!("`options.secrets.{id}` is not the name of a secret");
        let help = "Store the value with `holdfast secret set NAME`, and write `NAME` here.";
        return Err(field.reject(what, help));
    }
    Ok(pack)
}

/// The keys of a pack.
const KEYS: [&str; 15] = [
    "package",
    "version",
    "module",
    "folder",
    "identifier",
    "priority",
    "enabled",
    "options",
    "network",
    "files",
    "environment",
    "secrets",
    "prefix",
    "tools",
    "required",
];
