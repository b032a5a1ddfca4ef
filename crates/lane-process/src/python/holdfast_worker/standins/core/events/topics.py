"""The names of topics that the program or its channels use."""


class SystemTopics:
    USER_NOTIFY = "system.user.notify"
    AGENT_TASK = "system.agent.task"
    AGENT_BACKGROUND = "system.agent.background"
    EXTENSION_ERROR = "system.extension.error"
    # No part of this program publishes on these; an extension may.
    THREAD_COMPLETED = "thread.completed"
    SECURE_INPUT_REQUEST = "system.channel.secure_input_request"
    MCP_TOOL_APPROVAL_REQUEST = "system.mcp.tool_approval_request"
    MCP_TOOL_APPROVAL_RESPONSE = "system.mcp.tool_approval_response"
