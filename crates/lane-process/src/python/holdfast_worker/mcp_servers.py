"""MCP servers that a class connects to by itself, and returns from `get_mcp_servers`. They come and go while the extension is active, so
the model gets two tools for all of them: one that lists what the servers offer, and one that calls it."""

import json

from .shapes import plain
from .tools import ClassTool
from .wire import Failure


def field(it, *names):
    """A field whose name differs between the versions of the package `mcp`."""
    return next((getattr(it, name) for name in names if hasattr(it, name)), None)


def server_tools(extension, instance):
    """The tools, for an instance that has `get_mcp_servers`."""

    def servers():
        return {str(getattr(it, "name", place)): it for place, it in enumerate(instance.get_mcp_servers() or [])}

    async def listed() -> list:
        return [
            {"server": name, "tool": tool.name, "description": tool.description or "", "arguments": plain(field(tool, "inputSchema", "input_schema"))}
            for name, server in servers().items()
            for tool in await server.list_tools()
        ]

    async def called(server: str, tool: str, arguments: dict = {}):
        connected = servers()
        if server not in connected:
            raise Failure(f"no server `{server}` is connected; there are: {', '.join(connected) or 'none'}")
        result = await connected[server].call_tool(tool, arguments or None)
        said = "\n".join(getattr(it, "text", None) or json.dumps(plain(it), ensure_ascii=False) for it in result.content or [])
        if field(result, "isError", "is_error"):
            raise Failure(said or f"`{tool}` failed")
        return said

    about = f"of the MCP servers that `{extension}` is connected to"
    return [
        ClassTool.of({"name": f"{extension}_tools", "description": f"Lists the tools {about}, with their arguments.", "function": listed}),
        ClassTool.of({"name": f"{extension}_call", "description": f"Calls a tool {about}.", "function": called}),
    ]
