"""The tools of a class: the results of `get_tools` in the host's form.

Each is an object with `name`, `params_json_schema` and `on_invoke_tool`, as `function_tool` makes them; or a plain function; or a mapping
with a `name` and a `function`.
"""

import json

from .signatures import Signature, checked_effects
from .wire import INVALID, Failure


class ClassTool:
    """A tool of a class."""

    def __init__(self, sheet, call):
        self.sheet, self.call = sheet, call

    @classmethod
    def of(cls, it):
        if hasattr(it, "on_invoke_tool"):
            sheet = {"name": it.name, "description": getattr(it, "description", "") or ""}
            sheet["input_schema"] = lenient(getattr(it, "params_json_schema", None) or {"type": "object"})
            return cls(sheet, direct(it) if hasattr(it, "call_directly") else invoked(it))
        if isinstance(it, dict):
            function = next((it[name] for name in ("function", "run", "handler", "call") if callable(it.get(name))), None)
            if function is None:
                raise Failure(f"a tool has no `function`: {it}")
            tool = cls.of(function)
            schema = it.get("input_schema") or it.get("parameters") or tool.sheet["input_schema"]
            more = {name: it[name] for name in ("description", "output_schema", "effects", "timeout_ms", "render") if name in it}
            if "effects" in more:
                name = it.get("name") or tool.sheet["name"]
                checked_effects(more["effects"], lambda: f"`effects` of the tool `{name}`")
            return cls({**tool.sheet, "name": it.get("name") or tool.sheet["name"], "input_schema": schema, **more}, tool.call)
        if not callable(it):
            raise Failure(f"`get_tools` returned {it!r}, which is not a tool")
        function = it if hasattr(it, "__name__") else it.__call__
        signature = Signature(function)
        name = getattr(it, "name", None) or getattr(it, "__name__", type(it).__name__)
        said = getattr(it, "description", None) or signature.description
        return cls({"name": name, "description": said, "input_schema": signature.schema}, plain_call(function, signature))


def lenient(schema):
    """A tool's schema without the rule of strict schemas that every property is required: one with a default, or that may be null, can be
    left out, and the tool fills it in or refuses."""
    properties = schema.get("properties") or {}
    required = [it for it in schema.get("required") or [] if not can_be_left_out(properties.get(it))]
    return {**{name: it for name, it in schema.items() if name != "required"}, **({"required": required} if required else {})}


def can_be_left_out(schema):
    if not isinstance(schema, dict):
        return False
    kinds = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
    options = [it for name in ("anyOf", "oneOf") for it in schema.get(name) or []]
    return "default" in schema or "null" in kinds or any(it.get("type") == "null" for it in options)


def plain_call(function, signature):
    def call(request):
        return function(**read(signature.arguments, request["arguments"]))

    return call


def read(reader, *arguments):
    try:
        return reader(*arguments)
    except Exception as error:
        raise Failure(f"invalid arguments: {error}", INVALID) from error


def direct(tool):
    from agents import ToolContext

    def call(request):
        return tool.call_directly(ToolContext(None, tool_name=tool.name), request["arguments"])

    return call


def invoked(tool):
    """A tool of the package `agents`, whose context differs between versions."""

    def call(request):
        text = json.dumps(request["arguments"], ensure_ascii=False)
        return tool.on_invoke_tool(context_for(tool.name, request, text), text)

    return call


def context_for(name, request, text):
    import agents

    try:
        from agents.tool_context import ToolContext
    except ImportError:
        ToolContext = getattr(agents, "ToolContext", None)
    wanted = {"tool_name": name, "tool_call_id": str(request.get("call")), "tool_arguments": text}
    attempts = [wanted, {key: wanted[key] for key in ("tool_name", "tool_call_id")}, {"tool_call_id": wanted["tool_call_id"]}]
    for more in attempts if ToolContext is not None else []:
        try:
            return ToolContext(context=None, **more)
        except TypeError:
            continue
    return agents.RunContextWrapper(context=None)
