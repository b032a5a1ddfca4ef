"""A gate over tool calls. `holdfast ext build {{id}}` makes the component, `holdfast ext test {{id}}` runs tests.yaml."""

from holdfast import allow, deny, tool_gate


@tool_gate
def gate(call):
    """Asked about each call that the manifest's matcher fits. A gate that fails or is late has denied."""
    if call.tool.startswith("delete_"):
        return deny(f"{call.tool} is not allowed here")
    return allow()
