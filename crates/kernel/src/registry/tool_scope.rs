//! Which tools an agent has, and the tools by which other agents reach it.

use holdfast_contract::agents::{
    AgentMode, AgentSpec, AgentUse, CORE_TOOLS, HAND_BACK, ToolScope, handoff_arguments_schema,
};
use holdfast_contract::ids::{AgentId, ExtensionId};
use holdfast_contract::registry::ToolEntry;
use holdfast_contract::tool::{EffectClass, ToolGroup, ToolSpec, agent_arguments_schema};

/// Whether a tool is among those that an agent has.
#[inline]
pub fn offers(scope: &ToolScope, tool: &ToolEntry) -> bool {
    is_offered(tool, scope.extensions.as_deref(), scope.speaker.as_ref())
}

/// Whether a tool is for an agent that has these extensions' tools: the one that the conversation was handed over to, or the
/// session's own if there is none.
#[inline]
pub(crate) fn is_offered(
    tool: &ToolEntry,
    extensions: Option<&[ExtensionId]>,
    speaker: Option<&AgentId>,
) -> bool {
    let Some(active) = tool.stack.first() else { return false };
    match &active.agent {
        Some(AgentUse::HandBack) => return speaker.is_some(),
        Some(AgentUse::HandOver(agent)) if speaker == Some(agent) => return false,
        _ => {}
    }
    let Some(listed) = extensions else { return true };
    let (owner, group) = (&active.extension.id, active.spec.group);
    let is_core = group == Some(ToolGroup::Core);
    let is_listed = listed.iter().any(|id| id == owner || (is_core && id.as_str() == CORE_TOOLS));
    is_listed || (!listed.is_empty() && group == Some(ToolGroup::Companion))
}

/// The tools by which others reach an agent: it is asked and answers, or takes the conversation over and hands it back.
pub(crate) fn agent_tools(agent: &AgentSpec) -> Vec<(AgentUse, ToolSpec)> {
    let AgentSpec { id, description, .. } = agent;
    match agent.mode {
        AgentMode::Tool => {
            let spec = ToolSpec {
                input_schema: agent_arguments_schema(),
                effects: agent.effects,
                asks: agent.asks,
                timeout: agent.limits.time_budget,
                ..ToolSpec::named(agent.tool_name().as_str(), description)
            };
            vec![(AgentUse::Ask(id.clone()), spec)]
        }
        AgentMode::Handoff => {
            let over = format!("Hands the conversation over to the agent `{id}`: {description}");
            let back = "Gives the conversation back to the agent that handed it over.";
            vec![
                (AgentUse::HandOver(id.clone()), handoff_tool(agent.tool_name().as_str(), &over)),
                (AgentUse::HandBack, handoff_tool(HAND_BACK, back)),
            ]
        }
    }
}

fn handoff_tool(name: &str, description: &str) -> ToolSpec {
    ToolSpec {
        input_schema: handoff_arguments_schema(),
        effects: EffectClass::Pure,
        ..ToolSpec::named(name, description)
    }
}
