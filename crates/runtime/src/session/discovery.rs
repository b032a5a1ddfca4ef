//! What a session's models are shown of many tools, and the searches for the others. Both follow from the registry that the turn is
//! pinned to and from what the session has recorded.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::discovery::{FIND_TOOLS, FoundTools, SEARCHES};
use holdfast_contract::effect::ModelAct;
use holdfast_contract::host_call::arguments::FindToolsArguments;
use holdfast_contract::host_call::{Capability, HostCallKind};
use holdfast_contract::problem::Fault;
use holdfast_contract::registry::{ExtensionRef, Registry, ToolEntry};
use holdfast_contract::wire::Later;
use holdfast_kernel::registry::offers;
use serde_json::json;

use super::SessionActor;
use crate::host::{Caller, failed};
use crate::tools::discovery::{narrowed, recent, shown};

impl SessionActor {
    /// The registry as a model is to see it.
    pub(super) fn seen(&self, act: &ModelAct) -> Arc<Registry> {
        // Where all are shown anyway, it does not matter which were used.
        let recent = match act.registry.tools.len() > self.inner.home.tools().at_most {
            true => recent(&act.messages, self.searches(&act.registry)),
            false => Vec::new(),
        };
        let scope = |entry: &ToolEntry| offers(&act.scope, entry);
        narrowed(&act.registry, &shown(&act.registry, scope, &recent, self.inner.home.tools()))
    }

    /// Searches the tools of the registry that the turn is pinned to.
    pub(super) fn tools_find(
        &mut self,
        caller: &Caller,
        arguments: &FindToolsArguments,
    ) -> Later<Result<Content, Fault>> {
        if let Err(fault) = caller.require(HostCallKind::ToolsFind) {
            return failed(fault);
        }
        let registry = self.pinned_registry();
        let (names, mut found) = self.inner.tools_find(&registry, &self.session.scope(), arguments);
        let before = self.searches(&registry).iter().map(|found| found.search).max().unwrap_or(0);
        self.searched = self.searched.max(before) + 1;
        found["keep"] = json!(FoundTools { search: self.searched, tools: names });
        Box::pin(std::future::ready(Ok(found.into())))
    }

    /// Lists the extensions and tools of the registry that the turn is pinned to.
    pub(super) fn capabilities_list(&mut self, caller: &Caller) -> Later<Result<Content, Fault>> {
        if let Err(fault) = caller.require(HostCallKind::CapabilitiesList) {
            return failed(fault);
        }
        let registry = self.pinned_registry();
        let recent = recent(self.session.transcript(), self.searches(&registry));
        let listed = self.inner.capabilities_list(&registry, &self.session.scope(), &recent);
        Box::pin(std::future::ready(Ok(listed)))
    }

    fn pinned_registry(&mut self) -> Arc<Registry> {
        self.session.pins().next().and_then(|pin| pin.view.clone()).unwrap_or_default()
    }

    /// The searches that the extension with the search tool has stored in this session, if it may search.
    fn searches(&self, registry: &Registry) -> Vec<FoundTools> {
        let Some(searcher) = searcher(registry) else { return Vec::new() };
        if !self.inner.grants_of(searcher).hold(Capability::Discovery) {
            return Vec::new();
        }
        let kept =
            (0..SEARCHES).filter_map(|place| self.session.state(&searcher.id, &FoundTools::key(place)));
        kept.filter_map(|value| serde_json::from_value(value.value()?.clone()).ok()).collect()
    }
}

/// The extension whose search tool is active.
fn searcher(registry: &Registry) -> Option<&ExtensionRef> {
    let tool = registry.tools.iter().find(|entry| entry.name.as_str() == FIND_TOOLS)?;
    Some(&tool.stack.first()?.extension)
}
