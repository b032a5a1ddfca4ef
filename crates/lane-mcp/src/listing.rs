//! What a server offers, and what of it was approved. The approved definitions are pinned: a generation of the extension has them, so
//! that its tools are known without the server, and a definition that changes is shown to no model before a person approves it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use holdfast_contract::digest::Digest;
use holdfast_contract::problem::{Code, Problem};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The largest file of pins that is read.
const MAX_PIN_BYTES: u64 = 16 << 20;

/// A tool as its server defines it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// The server's name for it.
    pub name: String,
    /// A title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What the server claims about its effects. It is shown and not trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

impl ToolDefinition {
    /// What the definition is pinned by.
    pub fn digest(&self) -> Digest {
        Digest::of_json(self).unwrap_or_default()
    }
}

/// A prompt as its server defines it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptDefinition {
    /// The server's name for it.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// The names of its arguments, in order.
    #[serde(default)]
    pub arguments: Vec<String>,
}

/// What a server offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// What the server calls itself, with its version.
    pub server: String,
    /// The protocol revision that was negotiated.
    pub protocol: String,
    /// Its tools.
    pub tools: Vec<ToolDefinition>,
    /// Its prompts.
    #[serde(default)]
    pub prompts: Vec<PromptDefinition>,
    /// Whether it has resources.
    #[serde(default)]
    pub resources: bool,
}

impl Listing {
    fn digests(&self) -> BTreeMap<&str, Digest> {
        self.tools.iter().map(|tool| (tool.name.as_str(), tool.digest())).collect()
    }

    /// The tools whose definitions differ from the approved ones, each with how: `new` or `changed`.
    pub fn unapproved(&self, approved: &Listing) -> BTreeMap<String, &'static str> {
        let known = approved.digests();
        let differs = |tool: &ToolDefinition| match known.get(tool.name.as_str()) {
            None => Some("new"),
            Some(digest) if *digest != tool.digest() => Some("changed"),
            Some(_) => None,
        };
        self.tools.iter().filter_map(|tool| Some((tool.name.clone(), differs(tool)?))).collect()
    }

    /// The same, with the definitions of tools that are not approved replaced by the approved ones, or left out.
    pub fn as_approved(&self, approved: &Listing) -> Listing {
        let unapproved = self.unapproved(approved);
        let known: BTreeMap<_, _> = approved.tools.iter().map(|tool| (&tool.name, tool)).collect();
        let tools = self.tools.iter().filter_map(|tool| {
            if unapproved.contains_key(&tool.name) {
                known.get(&tool.name).map(|tool| (*tool).clone())
            } else {
                Some(tool.clone())
            }
        });
        Listing { tools: tools.collect(), ..self.clone() }
    }
}

/// What is pinned of one server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pins {
    /// How the server was reached when it was listed. Of another server nothing is approved.
    #[serde(default)]
    pub source: String,
    /// What was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Listing>,
    /// What the server offered last, where that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<Listing>,
}

impl Pins {
    /// The tools that wait for approval, each with how it differs.
    pub fn waiting(&self) -> BTreeMap<String, &'static str> {
        match (&self.offered, &self.approved) {
            (Some(offered), Some(approved)) => offered.unapproved(approved),
            _ => BTreeMap::new(),
        }
    }

    /// Approves what is offered: all of it, or these tools.
    pub fn approve(&mut self, only: &[String]) -> Vec<String> {
        let (Some(offered), Some(approved)) = (self.offered.clone(), self.approved.clone()) else {
            return Vec::new();
        };
        let is_meant = |name: &String| only.is_empty() || only.contains(name);
        let waiting: Vec<String> = self.waiting().into_keys().filter(is_meant).collect();
        let mut next = offered.as_approved(&approved);
        for name in &waiting {
            next.tools.retain(|tool| tool.name != *name);
            next.tools.extend(offered.tools.iter().find(|tool| tool.name == *name).cloned());
        }
        next.tools.sort_by(|one, other| one.name.cmp(&other.name));
        self.offered = Some(offered).filter(|offered| !offered.unapproved(&next).is_empty());
        self.approved = Some(next);
        waiting
    }
}

/// The folder with the pins of each server.
#[derive(Clone, Debug)]
pub struct PinStore {
    folder: PathBuf,
}

impl PinStore {
    /// The pins in this folder.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where the pins of an extension are.
    pub fn file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    /// What is pinned of a server; nothing if it was never listed.
    pub fn read(&self, id: &str) -> Result<Pins, Problem> {
        let file = self.file(id);
        if !file.exists() {
            return Ok(Pins::default());
        }
        let invalid = |why: String| {
            let what = format!("what was approved of `{id}` cannot be read: {why}");
            Problem::in_file(Code::McpChanged, &file, what)
                .help("Remove the file; the server's tools are approved again when it is listed.")
        };
        let bytes = holdfast_untrusted_files::read(&file, MAX_PIN_BYTES)
            .map_err(|error| invalid(error.to_string()))?;
        serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))
    }

    /// Replaces what is pinned of a server.
    pub fn write(&self, id: &str, pins: &Pins) -> Result<(), Problem> {
        let failed = |error: String| {
            Problem::in_file(Code::HomeUnavailable, &self.file(id), format!("it cannot be written: {error}"))
        };
        let bytes = serde_json::to_vec_pretty(pins).map_err(|error| failed(error.to_string()))?;
        self.prepare()
            .and_then(|()| holdfast_atomic_file::replace(&self.file(id), &bytes, 0o600))
            .map_err(|error| failed(error.to_string()))
    }

    /// Creates the folder, so that it can be watched.
    pub fn prepare(&self) -> std::io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes what a server offers now. What was never approved is, because the user has added the server; what differs from the
    /// approved waits. Gives the tools that wait.
    pub fn offer(
        &self,
        id: &str,
        source: &str,
        offered: &Listing,
    ) -> Result<BTreeMap<String, &'static str>, Problem> {
        let mut pins = self.read(id)?;
        let before = pins.clone();
        if pins.source != source || pins.approved.is_none() {
            pins = Pins { source: source.to_owned(), approved: Some(offered.clone()), offered: None };
        }
        let approved = pins.approved.clone().unwrap_or_default();
        let waiting = offered.unapproved(&approved);
        // What is gone and what no model sees needs nobody's approval.
        pins.approved = Some(offered.as_approved(&approved));
        pins.offered = Some(offered.clone()).filter(|_| !waiting.is_empty());
        if pins != before {
            self.write(id, &pins)?;
        }
        Ok(waiting)
    }
}

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;
