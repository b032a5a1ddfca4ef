"""A gate over tool calls. `holdfast ext build {{id}}` builds the component, `holdfast ext test {{id}}` runs tests.yaml."""

from holdfast import allow, deny, tool_gate


@tool_gate
def gate(call):
    """Called for each tool call that the manifest's matcher fits. A gate that fails or times out denies the call."""
    if call.tool.startswith("delete_"):
        return deny(f"{call.tool} is not allowed here")
    return allow()
