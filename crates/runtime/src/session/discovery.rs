//! What a session's models are shown of many tools, and the searches for the others. Both follow from the registry that the turn is
//! pinned to and from what the session has recorded.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::discovery::{FoundTools, ORCHESTRATOR, SEARCHES};
use holdfast_contract::effect::ModelAct;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{ExtensionRef, Implementation, Registry, ToolEntry};
use holdfast_kernel::registry::offers;
use serde::Deserialize;
use serde_json::json;

use super::SessionActor;
use crate::services::read;
use crate::tools::discovery::{capabilities, narrowed, recent, search, shown};

/// What the orchestrator may ask of a session.
pub(super) const ASKS: &[&str] = &["tools.find", "capabilities.list"];

/// `tools.find`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolsFind {
    query: String,
    #[serde(default)]
    limit: Option<usize>,
}

impl SessionActor {
    /// The registry as a model is to see it.
    pub(super) fn seen(&self, act: &ModelAct) -> Arc<Registry> {
        // Where all are shown anyway, it does not matter which were used.
        let recent = match act.registry.tools.len() > self.inner.home.tools().at_most {
            true => recent(&act.messages, self.searches()),
            false => Vec::new(),
        };
        let scope = |entry: &ToolEntry| offers(&act.scope, entry);
        narrowed(&act.registry, &shown(&act.registry, scope, &recent, self.inner.home.tools()))
    }

    /// Answers one of [`ASKS`] on the registry that the turn is pinned to.
    pub(super) fn look(
        &mut self,
        extension: &ExtensionRef,
        ask: &str,
        arguments: &Content,
    ) -> Result<Content, Fault> {
        if extension.id.as_str() != ORCHESTRATOR {
            let message = format!("the host has nothing called `{ask}` for `{}`", extension.id);
            return Err(Fault::new(Code::ExtensionFault, message));
        }
        let registry = self.session.pins().next().and_then(|pin| pin.view.clone()).unwrap_or_default();
        let offered = self.session.scope();
        let scope = |entry: &ToolEntry| offers(&offered, entry);
        let within: Vec<&ToolEntry> = registry.tools.iter().filter(|entry| scope(entry)).collect();
        let inner = self.inner.clone();
        let about = |it: &Implementation| {
            inner.extensions.found(&it.extension.digest).map(|found| found.description).unwrap_or_default()
        };
        if ask == "capabilities.list" {
            let recent = recent(self.session.transcript(), self.searches());
            let shown = shown(&registry, scope, &recent, inner.home.tools());
            return Ok(capabilities(&registry, &within, &shown, inner.home.tools(), about).into());
        }
        let ToolsFind { query, limit } = read(ask, arguments)?;
        let (names, mut told) = search(&within, &query, limit, about);
        let before = self.searches().iter().map(|found| found.search).max().unwrap_or(0);
        self.searched = self.searched.max(before) + 1;
        told["keep"] = json!(FoundTools { search: self.searched, tools: names });
        Ok(told.into())
    }

    /// The searches that the orchestrator has kept in this session.
    fn searches(&self) -> Vec<FoundTools> {
        let kept = (0..SEARCHES)
            .filter_map(|place| self.session.state(&ORCHESTRATOR.into(), &FoundTools::key(place)));
        kept.filter_map(|value| serde_json::from_value(value.value()?.clone()).ok()).collect()
    }
}
