//! A gate over tool calls. `holdfast ext build {{id}}` makes the component, `holdfast ext test {{id}}` runs tests.yaml.

use holdfast_extension::{Decision, ToolCall, tool_gate};

/// Asked about each call that the manifest's matcher fits. A gate that fails or is late has denied.
#[tool_gate]
fn gate(call: ToolCall) -> Decision {
    if call.tool.starts_with("delete_") {
        return Decision::Deny(format!("{} is not allowed here", call.tool));
    }
    Decision::Allow
}
