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
use holdfast_model::ModelRequest;
use serde_json::json;

use super::SessionActor;
use crate::host::{Caller, failed};
use crate::tools::discovery::{recent, shown};

impl SessionActor {
    /// What a model is asked, with the tools that it is to be shown.
    pub(super) fn model_request(&self, act: ModelAct) -> ModelRequest {
        let ModelAct { decided_by, model, scope, instructions, context, messages, registry, turn, .. } = act;
        // Where all are shown anyway, it does not matter which were used.
        let recent = if registry.tools.len() > self.inner.home.tools().at_most {
            recent(&messages, self.searches(&registry))
        } else {
            Vec::new()
        };
        let scope = |entry: &ToolEntry| offers(&scope, entry);
        let tools = shown(&registry, scope, &recent, self.inner.home.tools()).into_iter();
        let tools = tools.filter_map(|entry| Some(entry.stack.first()?.spec.clone())).collect();
        let tool_names = registry.tools.iter().map(|entry| entry.name.clone()).collect();
        let parameters =
            registry.agent(&turn.agent).map(|agent| agent.parameters.clone()).unwrap_or_default();
        ModelRequest {
            decided_by,
            model,
            instructions,
            context,
            messages,
            tools,
            tool_names,
            parameters,
            turn,
        }
    }

    /// Searches the tools of the registry that the turn is pinned to.
    pub(super) fn tools_find(
        &mut self,
        caller: &Caller,
        arguments: &FindToolsArguments,
    ) -> Later<Result<Content, Fault>> {
        if let Err(fault) = caller.require(&self.inner, HostCallKind::ToolsFind) {
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
        if let Err(fault) = caller.require(&self.inner, HostCallKind::CapabilitiesList) {
            return failed(fault);
        }
        let registry = self.pinned_registry();
        let recent = recent(self.session.transcript(), self.searches(&registry));
        let listed = self.inner.capabilities_list(&registry, &self.session.scope(), &recent);
        Box::pin(std::future::ready(Ok(listed)))
    }

    pub(super) fn pinned_registry(&mut self) -> Arc<Registry> {
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
        kept.filter_map(|value| serde_json::from_value(value.value().clone()).ok()).collect()
    }
}

/// The extension whose search tool is active.
fn searcher(registry: &Registry) -> Option<&ExtensionRef> {
    let tool = registry.tools.iter().find(|entry| entry.name.as_str() == FIND_TOOLS)?;
    Some(&tool.stack.first()?.extension)
}
