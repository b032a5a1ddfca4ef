"""MCP servers that a class connects to by itself, and returns from `get_mcp_servers`. They come and go while the extension is active, so
the model gets two tools for all of them: one that lists what the servers offer, and one that calls it."""

import inspect
import json
import types

from .shapes import plain
from .tools import ClassTool
from .wire import Failure


def field(it, *names):
    """A field whose name differs between the versions of the package `mcp`."""
    return next((getattr(it, name) for name in names if hasattr(it, name)), None)


async def offered(server, agent):
    """What a server offers the model, by name: what its own filter lets through. A filter that is a function gets the agent."""
    takes = inspect.signature(server.list_tools).parameters
    about = {"run_context": nobody(), "agent": agent()} if {"run_context", "agent"} <= set(takes) else {}
    return {tool.name: tool for tool in await server.list_tools(**about)}


def nobody():
    from agents import RunContextWrapper

    return RunContextWrapper(context=None)


async def needs_approval(server, tool, arguments, agent):
    """Whether a person is to approve this call, as the class set it for the server. What cannot be read is asked about."""
    rule = getattr(server, "_get_needs_approval_for_tool", None)
    if rule is None:
        return getattr(server, "require_approval", None) not in (None, False, "never")
    rule = rule(tool, agent())
    while callable(rule) or hasattr(rule, "__await__"):
        rule = await rule if hasattr(rule, "__await__") else rule(nobody(), arguments, "")
    return bool(rule)


def server_tools(extension, instance, wire):
    """The tools, for an instance that has `get_mcp_servers`. They honour what the class set for each server: which of its tools are
    offered, and which a person approves."""

    def agent():
        try:
            from agents import Agent
        except ImportError:
            Agent = types.SimpleNamespace
        return Agent(name=extension)

    def servers():
        return {str(getattr(it, "name", place)): it for place, it in enumerate(instance.get_mcp_servers() or [])}

    async def listed() -> list:
        return [
            {"server": name, "tool": tool.name, "description": tool.description or "", "arguments": plain(field(tool, "inputSchema", "input_schema"))}
            for name, server in servers().items()
            for tool in (await offered(server, agent)).values()
        ]

    async def called(server: str, tool: str, arguments: dict = {}):
        connected = servers()
        if server not in connected:
            raise Failure(f"no server `{server}` is connected; there are: {', '.join(connected) or 'none'}")
        tools = await offered(connected[server], agent)
        if tool not in tools:
            raise Failure(f"`{server}` offers no tool `{tool}`; it offers: {', '.join(tools) or 'none'}")
        if await needs_approval(connected[server], tools[tool], arguments, agent):
            shown = json.dumps(arguments, ensure_ascii=False)
            prompt = f"The tool `{tool}` of the MCP server `{server}` wants to run with {shown}. May it?"
            try:
                allowed = await wire.ask_later("ui", {"kind": "confirm", "prompt": prompt})
            except Failure as failure:
                raise Failure(f"`{tool}` needs an approval, and nobody could be asked: {failure}") from failure
            if allowed is not True:
                raise Failure(f"`{tool}` needs an approval, which was not given")
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
