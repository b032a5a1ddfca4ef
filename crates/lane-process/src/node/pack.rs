//! What a Node extension consists of: a package of the registry, or files of its own with packages that these name.

use std::collections::BTreeMap;

use holdfast_contract::digest::Digest;
use holdfast_contract::manifest::Manifest;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Bundle, Vault};
use serde_json::{Map, Value, json};

/// The sections of a `package.json` that name packages, as far as they are installed.
const SECTIONS: [&str; 3] = ["dependencies", "optionalDependencies", "peerDependencies"];
/// The longest name of a package.
const MAX_NAME_CHARS: usize = 214;

/// What runs in a worker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PackSource {
    /// A package, by its name.
    Package(String),
    /// Files of its own; the entry, unless `package.json` or the usual names decide.
    Files(Option<String>),
}

/// What has to be installed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NeededPackages {
    /// The sections of the `package.json` to install, with what they name.
    pub sections: BTreeMap<&'static str, Map<String, Value>>,
    /// The lock file that lies beside it.
    pub lock: Option<String>,
}

impl NeededPackages {
    /// Each with its versions.
    pub(crate) fn lines(&self) -> Vec<String> {
        let all = self.sections.values().flatten();
        let mut lines: Vec<_> =
            all.map(|(name, range)| format!("{name}@{}", range.as_str().unwrap_or("*"))).collect();
        lines.sort();
        lines.dedup();
        lines
    }

    /// Whether something has to be installed besides what the stand-in replaces.
    pub(crate) fn is_empty(&self, standin: &str) -> bool {
        self.sections.values().all(|section| section.keys().all(|name| name == standin))
    }

    /// The `package.json` of the installation, with a package replaced by the one at this path.
    pub(crate) fn manifest(&self, standin: Option<(&str, &str)>) -> Value {
        let mut manifest = json!({ "name": "holdfast-packs", "private": true });
        for (section, names) in &self.sections {
            manifest[*section] = Value::Object(names.clone());
        }
        if let Some((name, path)) = standin {
            let source = format!("file:{path}");
            // npm refuses an override that differs from what is named directly.
            for section in self.sections.keys() {
                if let Some(range) = manifest[*section].get_mut(name) {
                    *range = source.as_str().into();
                }
            }
            manifest["overrides"] = json!({ name: source });
        }
        manifest
    }

    /// Distinguishes it from others for one Node.
    pub(crate) fn digest(&self, identity: &str) -> Digest {
        Digest::of(format!("{identity}\n{}\n{:?}", self.manifest(None), self.lock).as_bytes())
    }
}

/// What an activation consists of, and what it needs.
pub(crate) fn source_of(
    manifest: &Manifest,
    bundle: &Bundle,
    vault: &dyn Vault,
) -> Result<(PackSource, NeededPackages), Fault> {
    let named = manifest.package.as_deref().filter(|name| !name.starts_with(['.', '/']));
    if let Some(named) = named.filter(|_| manifest.entrypoint.is_none()) {
        let (name, range) = match named.char_indices().skip(1).find(|(_, char)| *char == '@') {
            Some((at, _)) => (&named[..at], &named[at + 1..]),
            None => (named, "*"),
        };
        let version = bundle.config.value().pointer("/pack/version").and_then(Value::as_str);
        let range = version.unwrap_or(range);
        let section = checked([(name.to_owned(), Value::from(range))])?;
        let sections = [(SECTIONS[0], section)].into();
        return Ok((PackSource::Package(name.to_owned()), NeededPackages { sections, lock: None }));
    }
    let entry = Some(bundle.entrypoint.clone()).filter(|entry| !entry.is_empty());
    let text = |name: &str| -> Result<Option<String>, Fault> {
        let Some(digest) = bundle.files.get(name) else { return Ok(None) };
        let bytes = vault.file(*digest)?;
        String::from_utf8(bytes).map(Some).map_err(|_| refused(format!("`{name}` is not UTF-8")))
    };
    let Some(own) = text("package.json")? else {
        return Ok((PackSource::Files(entry), NeededPackages::default()));
    };
    let own: Value = serde_json::from_str(&own)
        .map_err(|error| refused(format!("`package.json` cannot be read: {error}")))?;
    let mut needed = NeededPackages { lock: text("package-lock.json")?, ..NeededPackages::default() };
    for section in SECTIONS {
        let Some(Value::Object(names)) = own.get(section) else { continue };
        let optional =
            |name: &str| own.pointer("/peerDependenciesMeta")?.get(name)?.get("optional")?.as_bool();
        let wanted = names.iter().filter(|(name, _)| section != SECTIONS[2] || optional(name) != Some(true));
        let names = checked(wanted.map(|(name, range)| (name.clone(), range.clone())))?;
        if !names.is_empty() {
            needed.sections.insert(section, names);
        }
    }
    if needed.sections.is_empty() {
        needed.lock = None;
    }
    Ok((PackSource::Files(entry), needed))
}

fn refused(why: String) -> Fault {
    Fault::new(Code::PackagesRefused, why)
}

/// Packages of the registry with ranges of versions; an error for anything else, such as a path or an address.
fn checked(names: impl IntoIterator<Item = (String, Value)>) -> Result<Map<String, Value>, Fault> {
    let mut checked = Map::new();
    for (name, range) in names {
        if !is_name(&name) {
            return Err(refused(format!("`{}` is not the name of a package", shown(&name))));
        }
        let range = range.as_str().map(str::trim).unwrap_or_default().to_owned();
        if !is_range(&range) {
            let what = format!("`{}` of the package `{name}` is not a range of versions", shown(&range));
            return Err(refused(what));
        }
        checked.insert(name, range.into());
    }
    Ok(checked)
}

fn shown(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(80).collect()
}

/// Whether a text is the name of a package of the registry.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let fits = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.' | '~');
        part.starts_with(|first: char| first.is_ascii_alphanumeric()) && part.chars().all(fits)
    };
    let parts = match name.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/').map(|(scope, name)| is_part(scope) && is_part(name)),
        None => Some(is_part(name)),
    };
    name.len() <= MAX_NAME_CHARS && parts.unwrap_or(false)
}

/// Whether a text is a range of versions, or a tag.
fn is_range(range: &str) -> bool {
    let fits = |char: char| char.is_ascii_alphanumeric() || " .-+^~<>=|*".contains(char);
    range.chars().all(fits) && !range.starts_with('-')
}
