"""Between the SDK and the component's interface: the classes that componentize-py looks for, one for each interface.

`ext build` writes a module that takes from here the classes of the extension's roles. Nothing here is for authors.
"""

import json

from componentize_py_types import Err

import holdfast

try:
    from wit_world.imports import types
except ImportError:
    types = None


def _module(package, name):
    """A generated module, if the world has its interface. All are loaded at build time: at run time there is no file system."""
    try:
        return getattr(__import__(f"wit_world.{package}", fromlist=[name]), name, None) or __import__(
            f"wit_world.{package}.{name}", fromlist=[name]
        )
    except ImportError:
        return None


_exports = {
    name: _module("exports", name)
    for name in (
        "tools", "api", "agent", "commands", "model_route", "tool_modify", "tool_gate", "tool_after", "compaction_before",
    )
}
_imports = {
    name: _module("imports", name)
    for name in (
        "verdicts", "log", "config", "session", "state", "messages", "clock", "random", "events", "ui", "secrets",
        "subscriptions", "timers", "extensions", "services", "agents", "channels", "prompts", "system", "http", "files",
        "environment", "conversations", "results", "discovery", "maintenance",
    )
}


def _content(value):
    if isinstance(value, str):
        return types.Content_Text(value)
    return types.Content_Json(holdfast._json(value))


def _value(content):
    return content.value if isinstance(content, types.Content_Text) else json.loads(content.value)


def _call(call):
    return holdfast.ToolCall(call.id, call.tool, json.loads(call.arguments))


_FAILURES = {
    "invalid_arguments": "Failure_InvalidArguments",
    "denied": "Failure_Denied",
    "not_found": "Failure_NotFound",
    "failed": "Failure_Failed",
}


def _guarded(function, *arguments):
    """Runs the author's code; an exception becomes the interface's failure."""
    try:
        return function(*arguments)
    except Err:
        raise
    except holdfast.Failure as failure:
        raise Err(getattr(types, _FAILURES[failure.kind])(str(failure)))
    except Exception as error:
        raise Err(types.Failure_Failed(f"{type(error).__name__}: {error}"))


class _Failing:
    """A host interface whose failures are the SDK's exceptions."""

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        function = getattr(self._module, name)
        if isinstance(function, type):
            return function

        return lambda *arguments: self.in_its_words(function, *arguments)

    @staticmethod
    def in_its_words(function, *arguments):
        try:
            return function(*arguments)
        except Err as error:
            kind = type(error.value).__name__
            raised = {
                "Failure_InvalidArguments": holdfast.InvalidArguments,
                "Failure_Denied": holdfast.Denied,
                "Failure_NotFound": holdfast.NotFound,
            }
            raise raised.get(kind, holdfast.Failure)(error.value.value)


class _Log:
    def __init__(self, module):
        self._module = module

    def line(self, level, message):
        self._module.log(self._module.Level[level.upper()], str(message))


for _name, _linked in _imports.items():
    if _linked is not None and _name != "verdicts":
        holdfast._host[_name] = _Log(_linked) if _name == "log" else _Failing(_linked)


class Tools:
    def list(self):
        spec = _exports["tools"].ToolSpec
        return [
            spec(
                tool.name,
                tool.description,
                holdfast._json(tool.schema),
                None if tool.output_schema is None else holdfast._json(tool.output_schema),
                types.Effects[tool.effects.upper()],
                tool.timeout_ms,
                None,
            )
            for _, tool in sorted(holdfast._tools.items())
        ]

    def call(self, tool, arguments):
        entry = holdfast._tools.get(tool)
        if entry is None:
            raise Err(types.Failure_NotFound(f"there is no tool `{tool}`"))
        return _content(_guarded(holdfast._call, entry, arguments))


class Api:
    def methods(self):
        spec = _exports["api"].Method
        return [spec(method.name, method.description) for _, method in sorted(holdfast._methods.items())]

    def call(self, method, arguments):
        entry = holdfast._methods.get(method)
        if entry is None:
            raise Err(types.Failure_NotFound(f"there is no method `{method}`"))
        return _content(_guarded(holdfast._call, entry, arguments))


class Commands:
    def list(self):
        spec = _exports["commands"].CommandSpec
        return [spec(name, description) for name, (description, _) in sorted(holdfast._commands.items())]

    def run(self, name, arguments):
        if name not in holdfast._commands:
            raise Err(types.Failure_NotFound(f"there is no command `{name}`"))
        return _content(_guarded(holdfast._commands[name][1], arguments))


class Agent:
    def descriptor(self):
        module = _exports["agent"]
        id, description, integration, _ = holdfast._agent
        return module.AgentSpec(id, description, module.Integration[integration.upper()])

    def invoke(self, task):
        return _content(_guarded(holdfast._agent[3], task))


class Setup:
    def schema(self):
        return holdfast._json(holdfast._setup.schema())

    def apply(self, values):
        _guarded(holdfast._setup.apply, json.loads(values))

    def complete(self):
        return str(_guarded(holdfast._setup.complete))


def _nothing(_):
    return None


def _event(event):
    payload = json.loads(event.payload)
    return holdfast.Event(event.id, event.topic, payload, event.key, event.correlation, event.attempt, event.repeat)


def _file(file):
    return holdfast.File(file.name, file.media_type, bytes(file.content))


def _same(value):
    return value


def _maybe(change):
    return lambda value: None if value is None else change(value)


def _verdict(answer):
    words = {"allow": "Verdict_Allow", "flag": "Verdict_Flag", "block": "Verdict_Block"}
    return _said(_imports["verdicts"], words, answer)


def _sanitized(answer):
    words = {"unchanged": "Sanitized_Unchanged", "flag": "Sanitized_Flagged", "block": "Sanitized_Blocked"}
    if isinstance(answer, holdfast.Answer) and answer.word == "replace":
        return _imports["verdicts"].Sanitized_Replaced(_content(answer.value))
    return _said(_imports["verdicts"], words, answer)


def _decision(answer):
    words = {"allow": "Decision_Allow", "deny": "Decision_Deny", "ask": "Decision_Ask"}
    return _said(_exports["tool_gate"], words, answer)


def _said(module, words, answer):
    if not isinstance(answer, holdfast.Answer) or answer.word not in words:
        raise Err(types.Failure_Failed(f"the hook answered {answer!r}; it may say {', '.join(words)}"))
    kind = getattr(module, words[answer.word])
    return kind() if answer.value is None else kind(str(answer.value))


def _route(route):
    return _exports["model_route"].Route(route.model, route.authoritative, route.reason)


def _modification(change):
    arguments = None if change.arguments is None else holdfast._json(change.arguments)
    return _exports["tool_modify"].Modification(arguments, change.implementation)


def _enrichment(change):
    artifacts = [types.Artifact(it.name, it.media_type, _content(it.content)) for it in change.artifacts]
    result = None if change.result is None else _content(change.result)
    render = None if change.render is None else holdfast._json(change.render)
    return _exports["tool_after"].Enrichment(result, artifacts, render)


def _plan(plan):
    return _exports["compaction_before"].Plan(plan.instructions, plan.keep)


def _hook(function, name, takes, gives):
    """A class with one method that converts its arguments, calls the author's function and converts the answer."""
    return type(function, (), {function: _method(name, takes, gives)})


def _method(name, takes, gives):
    def method(self, *arguments):
        read = [take(argument) for take, argument in zip(takes, arguments)]
        return gives(_guarded(holdfast._hooks[name], *read))

    return method


LifecycleInitialize = _hook("initialize", "initialize", [], _nothing)
LifecycleStart = _hook("start", "start", [], _nothing)
LifecycleStop = _hook("stop", "stop", [], _nothing)
LifecycleDestroy = _hook("destroy", "destroy", [], _nothing)
LifecycleHealth = _hook("health_check", "health_check", [], bool)
SessionStart = _hook("session_start", "session_start", [], _nothing)
SessionEnd = _hook("session_end", "session_end", [], _nothing)
SessionCancel = _hook("session_cancel", "session_cancel", [], _nothing)
TurnStart = _hook("turn_start", "turn_start", [], _nothing)
TurnEnd = _hook("turn_end", "turn_end", [_maybe(_value)], _nothing)
InputNormalise = _hook("input_normalise", "input_normalise", [_value], _maybe(_content))
SanitizeInput = _hook("sanitize_input", "sanitize_input", [_value], _sanitized)
GuardInput = _hook("guard_input", "guard_input", [_value], _verdict)
Context = _hook("get_context", "context", [_value], _same)
ModelRoute = _hook("model_route", "model_route", [_value], _maybe(_route))
ToolModify = _hook("tool_modify", "tool_modify", [_call], _maybe(_modification))
ToolGate = _hook("tool_gate", "tool_gate", [_call], _decision)
ToolAfter = _hook("tool_after", "tool_after", [_call, _value], _maybe(_enrichment))
SanitizeResult = _hook("sanitize_result", "sanitize_result", [_call, _value], _sanitized)
GuardResult = _hook("guard_result", "guard_result", [_call, _value], _verdict)
SanitizeOutput = _hook("sanitize_output", "sanitize_output", [_value], _sanitized)
GuardOutput = _hook("guard_output", "guard_output", [_value], _verdict)
GuardChunk = _hook("guard_chunk", "guard_chunk", [_value], _verdict)
ResponseProcess = _hook("response_process", "response_process", [_value], _maybe(_content))
CompactionBefore = _hook("compaction_before", "compaction_before", [], _maybe(_plan))
CompactionProvide = _hook("compaction_provide", "compaction_provide", [_value], _same)
RenderCall = _hook("render_call", "render_call", [_same, json.loads], _same)
RenderResult = _hook("render_result", "render_result", [_same, _value], _same)
Scheduler = _hook("execute_task", "execute_task", [_same], _maybe(_content))
Subscriber = _hook("on_event", "on_event", [_event], _nothing)
Service = _hook("run_background", "run_background", [], _nothing)
Channel = _hook("send_to_user", "send_to_user", [_same, _same, _same], _nothing)
ChannelMessage = _hook("send_message", "send_message", [_same, _same], _nothing)
ChannelFile = _hook("send_file", "send_file", [_same, _file, _same], _nothing)
ChannelQuestion = _hook("send_question", "send_question", [_same, _same, _same, _same], _nothing)
StreamingStatus = _hook("stream_status", "stream_status", [_same, _same, _same], _nothing)


class StreamingChannel:
    stream_start = _method("stream_start", [_same, _same], _nothing)
    stream_chunk = _method("stream_chunk", [_same, _same, _same], _nothing)
    stream_end = _method("stream_end", [_same, _same, _same, _same], _nothing)
