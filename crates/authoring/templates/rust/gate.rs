//! A gate over tool calls. `holdfast ext build {{id}}` builds the component, `holdfast ext test {{id}}` runs tests.yaml.

use holdfast_extension::{Decision, ToolCall, tool_gate};

/// Called for each tool call that the manifest's matcher fits. A gate that fails or times out denies the call.
#[tool_gate]
fn gate(call: ToolCall) -> Decision {
    if call.tool.starts_with("delete_") {
        return Decision::Deny(format!("{} is not allowed here", call.tool));
    }
    Decision::Allow
}
