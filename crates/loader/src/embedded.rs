//! Extensions whose bytes are embedded in the program. The loader reports them like those in a folder, the lanes run them, and
//! the settings configure or disable them.

use std::path::Path;

use holdfast_contract::budgets::Budgets;
use holdfast_contract::content::Content;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::{self, LaneKind, Parsed, own_settings};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::registry::Descriptor;
use holdfast_contract::system_frames::BuiltIn;
use holdfast_contract::wire::Bundle;
use holdfast_lane_declarative::agent;
use serde_json::{Map, Value};

use crate::candidate::{Candidate, content_addressed, overlay};

/// A component that the program carries, or an agent in words.
#[derive(Clone, Copy)]
pub struct EmbeddedComponent {
    /// The extension's id.
    pub id: &'static str,
    /// Its manifest.
    pub manifest: &'static str,
    /// The component; nothing where the manifest is all there is.
    pub bytes: &'static [u8],
}

impl EmbeddedComponent {
    /// The extension's id.
    pub fn extension(&self) -> ExtensionId {
        self.id.into()
    }

    /// Whether one of the same name in the home takes its place. What is only words guards nothing.
    pub(crate) fn is_overridable(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What it has because it is built in. A component names its tools when it is loaded; an agent in words has one name, which is known
    /// before.
    pub fn built_in(&self) -> BuiltIn {
        let parsed = manifest::parse(Path::new(self.id), self.manifest);
        let agent = parsed.ok().filter(|_| self.is_overridable()).and_then(|it| agent(&it.manifest, "").ok());
        BuiltIn { tools: agent.map(|agent| Descriptor::agent(agent).tool_names()).unwrap_or_default() }
    }

    /// The extension as it is set. It is given nothing: what is built in and wants something is native.
    pub(crate) fn candidate(
        &self,
        set: Option<&Map<String, Value>>,
        budgets: Budgets,
    ) -> Result<Candidate, Problem> {
        let file = format!("{}/manifest.yaml", self.id);
        let Parsed { manifest, warnings, .. } =
            manifest::parse(Path::new(&file), self.manifest).map_err(|_| {
                Problem::new(Code::Internal, format!("the manifest of `{}` cannot be read", self.id))
            })?;
        let mut config = Value::Object(manifest.config.clone());
        overlay(&mut config, &Value::Object(own_settings(set)));
        let entrypoint = manifest.entrypoint.clone().unwrap_or_default();
        let (lane, code) = if self.is_overridable() {
            (LaneKind::Declarative, Vec::new())
        } else {
            (LaneKind::Wasm, vec![(entrypoint.clone(), self.bytes.to_vec())])
        };
        let (files, contents) = content_addressed(code);
        let bundle = Bundle {
            lane: lane.as_str().to_owned(),
            manifest: self.manifest.to_owned(),
            entrypoint,
            files,
            config: Content::new(config),
            grants: Default::default(),
            budgets,
            pinned: None,
        };
        Ok(Candidate { manifest, warnings, bundle, files: contents })
    }
}
