//! Which of many tools a model is shown, and how the others are found.
//!
//! A few dozen tools are all shown. Where there are more, a model is shown those that are built in, the agents, what its last search
//! found, what it has used, and what it found before, up to a limit; [`FIND_TOOLS`] searches the rest (`rank.rs`). A tool that is not shown is there
//! all the same: a call of it goes the way of every call.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_contract::discovery::{FIND_TOOLS, FoundTools, MAX_FOUND_TOOLS};
use holdfast_contract::ids::{AgentId, ExtensionId, ToolName};
use holdfast_contract::message::Message;
use holdfast_contract::registry::{AgentSpec, AgentUse, Implementation, Registry, ToolEntry};
use holdfast_home::PromptTool;
use serde_json::{Value, json};

use super::rank::{Ranker, parameters};
use crate::runtime::Runtime;

/// Places that what was found or used has in any case, however many tools are always shown.
const MIN_FOUND_SLOTS: usize = 12;

/// How many tools a search finds that names no number.
const DEFAULT_FOUND_TOOLS: usize = 5;

/// Which tools models are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolsShown {
    /// The extensions whose tools are always shown: those that are built in.
    pub always: BTreeSet<ExtensionId>,
    /// Where there are no more tools than this, all are shown.
    pub at_most: usize,
}

impl Default for ToolsShown {
    fn default() -> Self {
        Self { always: BTreeSet::new(), at_most: 40 }
    }
}

/// The tools that a model is shown of those within its scope, by name. `recent` are those that it found or used, the most important
/// first. Where nothing can be searched with, everything is shown.
pub(crate) fn shown<'r>(
    registry: &'r Registry,
    scope: impl Fn(&ToolEntry) -> bool,
    recent: &[ToolName],
    settings: &ToolsShown,
) -> Vec<&'r ToolEntry> {
    let within: Vec<&ToolEntry> = registry.tools.iter().filter(|entry| scope(entry)).collect();
    let searches = within.iter().any(|entry| entry.name.as_str() == FIND_TOOLS);
    if within.len() <= settings.at_most || !searches {
        return within;
    }
    let always = |entry: &ToolEntry| {
        let listed = |it: &Implementation| it.agent.is_some() || settings.always.contains(&it.extension.id);
        entry.stack.first().is_some_and(listed)
    };
    let standing = within.iter().filter(|entry| always(entry)).count();
    let places = settings.at_most.saturating_sub(standing).max(MIN_FOUND_SLOTS);
    let chosen =
        recent.iter().filter(|name| within.iter().any(|entry| entry.name == **name && !always(entry)));
    let chosen: BTreeSet<&ToolName> = chosen.take(places).collect();
    within.into_iter().filter(|entry| always(entry) || chosen.contains(&entry.name)).collect()
}

/// What a model has found and used, the most important first: the last search, the tools that the conversation has calls of, the latest
/// first, and then the earlier searches.
pub(crate) fn recent(messages: &[Message], mut searches: Vec<FoundTools>) -> Vec<ToolName> {
    searches.sort_by_key(|found| std::cmp::Reverse(found.search));
    let mut searches = searches.into_iter().map(|found| found.tools);
    let last = searches.next().unwrap_or_default();
    let used = messages.iter().rev().flat_map(|message| match message {
        Message::Assistant { calls, .. } => calls.as_slice(),
        _ => &[],
    });
    let mut all: Vec<ToolName> = Vec::new();
    for name in last.into_iter().chain(used.map(|call| call.tool.clone())).chain(searches.flatten()) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// What a search says that was asked for so many: the tools, best first, and how many there are in all.
pub(crate) fn search(
    tools: &[&ToolEntry],
    request: &str,
    limit: Option<usize>,
    about: impl Fn(&Implementation) -> String,
) -> (Vec<ToolName>, Value) {
    let limit = limit.unwrap_or(DEFAULT_FOUND_TOOLS).clamp(1, MAX_FOUND_TOOLS);
    let searched = tools.iter().copied().filter(|entry| entry.name.as_str() != FIND_TOOLS);
    let hits = Ranker::new(searched, about).search(request, limit);
    let lines = hits.iter().filter_map(|entry| {
        let active = entry.stack.first()?;
        Some(json!({
            "name": entry.name,
            "description": active.spec.description,
            "parameters": parameters(active),
            "extension": active.extension.id,
        }))
    });
    let told = json!({ "tools": lines.collect::<Vec<_>>(), "searched": tools.len() });
    (hits.iter().map(|entry| entry.name.clone()).collect(), told)
}

/// An extension in a summary: how many tools it has, and which of them are shown.
struct ListedExtension<'r> {
    description: String,
    tools: usize,
    shown: Vec<&'r ToolName>,
}

impl ListedExtension<'_> {
    fn new(description: String) -> Self {
        Self { description, tools: 0, shown: Vec::new() }
    }
}

/// What is there, for a summary: the agents, and the extensions that are not built in, each with how many tools it has and
/// how many of them are not shown.
pub(crate) fn capabilities(
    registry: &Registry,
    within: &[&ToolEntry],
    shown: &[&ToolEntry],
    settings: &ToolsShown,
    about: impl Fn(&Implementation) -> String,
) -> Value {
    let called = |id: &AgentId| {
        within.iter().any(|entry| {
            entry.stack.first().is_some_and(|it| it.agent.as_ref().and_then(AgentUse::agent) == Some(id))
        })
    };
    let reached = registry.agents.iter().filter(|agent| called(&agent.id));
    let agents = reached.map(|agent| {
        let AgentSpec { id, description, mode, .. } = agent;
        json!({ "id": id, "description": description, "mode": mode, "tool": agent.tool_name() })
    });
    let mut extensions: BTreeMap<&ExtensionId, ListedExtension<'_>> = BTreeMap::new();
    for entry in within {
        let Some(active) = entry.stack.first().filter(|it| it.agent.is_none()) else { continue };
        let id = &active.extension.id;
        if settings.always.contains(id) {
            continue;
        }
        let listed = extensions.entry(id).or_insert_with(|| ListedExtension::new(about(active)));
        listed.tools += 1;
        if shown.iter().any(|other| other.name == entry.name) {
            listed.shown.push(&entry.name);
        }
    }
    let extensions = extensions.into_iter().map(|(id, listed)| {
        let ListedExtension { description, tools, shown } = listed;
        let hidden = tools - shown.len();
        json!({ "id": id, "description": description, "tools": tools, "hidden": hidden, "names": shown })
    });
    json!({ "agents": agents.collect::<Vec<_>>(), "extensions": extensions.collect::<Vec<_>>() })
}

impl Runtime {
    /// The tools that a prompt names: those that the model of a new session is shown.
    pub fn prompt_tools(&self) -> Vec<PromptTool> {
        let registry = self.registry();
        let tools =
            shown(&registry, |_| true, &[], self.inner().home.tools()).into_iter().filter_map(|entry| {
                let description = entry.stack.first()?.spec.description.clone();
                Some(PromptTool { name: entry.name.to_string(), description })
            });
        tools.collect()
    }
}

#[cfg(test)]
#[path = "discovery_tests.rs"]
mod tests;
