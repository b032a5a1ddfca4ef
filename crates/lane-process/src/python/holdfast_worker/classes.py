"""A class as an extension. Its roles follow from its methods.

The class is instantiated at `hello`. If it has `initialize`, its tools are known only afterwards: the host calls `initialize` and then
sends `hello` again.
"""

import asyncio
import functools
import inspect
import os
import re
import typing

from .context import TURN, ExtensionContext, event_of, revived
from .contract import AgentInvocationContext, TurnContext
from .imports import load_class_module
from .listening import watch
from .message import sent_file
from .shapes import plain, typed
from .signatures import checked_effects
from .tools import ClassTool
from .wire import INVALID, Failure

PROTOCOL = "0.1"
LIFE = {"initialize": "initialize", "start": "start", "stop": "stop", "destroy": "destroy", "health_check": "health-check"}
CHANNEL = {
    "send_to_user": "send-to-user", "send_message": "send-message", "send_file": "send-file", "send_question": "send-question",
}  # fmt: skip
STREAM = {f"on_stream_{it}": f"stream-{it}" for it in ("start", "chunk", "status", "end")}
SETUP = {"get_setup_schema": "schema", "apply_config": "apply", "on_setup_complete": "complete"}
RENDER = {"render_call": "render-call", "render_result": "render-result"}
# A method with the name of a hook point is a hook there. The context provider has another name: `get_context`.
POINTS = (
    "session_start", "session_end", "session_cancel", "turn_start", "turn_end", "input_normalise", "sanitize_input", "guard_input",
    "model_route", "tool_modify", "tool_gate", "tool_after", "sanitize_result", "guard_result", "sanitize_output",
    "guard_output", "guard_chunk", "response_process", "compaction_before", "compaction_provide",
)  # fmt: skip
# Methods that belong to a role, and are not API methods.
OURS = {*LIFE, *CHANNEL, *STREAM, *SETUP, *RENDER, *POINTS, "get_tools", "get_agent_descriptor", "execute_task", "get_schedule", "get_mcp_servers"}
OURS |= {"run_background", "get_context", "context_priority", "get_commands", "run_command", "on_event", "create_service"}
# What the host calls of the owner of a service.
SERVICES = {"service:create": "create", "service:call": "call", "service:dispose": "dispose"}
# Topics whose events are kept in memory only.
IN_MEMORY = ("user_message", "agent_response")


class ClassExtension:
    """An instance of a class, and the requests of the host to it."""

    def __init__(self, target, wire):
        self.target, self.wire = target, wire
        self.instance, self.context, self.table, self.initialised, self.services = None, None, None, False, {}

    # What it is.

    def serve(self, method, params):
        params = params or {}
        TURN.set(params.get("turn") or agent_turn(params))
        if method == "hello":
            return self.hello(params)
        if method == "function":
            return getattr(self, params["role"])(params["function"], params.get("arguments") or {})
        return getattr(self, method)(**params)

    def hello(self, params):
        if self.instance is None:
            self.context = ExtensionContext(self.wire, params)
            watch(self.wire, params["id"])
            instance = self.made(params["id"])
            check_config(instance, params["id"], params["config"])
            self.instance = instance
        later = self.has("initialize") and not self.initialised
        welcome = {"protocol": PROTOCOL, "functions": self.functions(), "methods": self.methods(), "later": later}
        return welcome if later else {**welcome, **self.described()}

    def made(self, extension):
        module, _, name = self.target.partition(":")
        if module.endswith(".py"):
            module = module[:-3].replace("/", ".")
        loaded = load_class_module(extension, module)
        return (getattr(loaded, name, None) or self.missing(module, name) if name else only_class(loaded))()

    def missing(self, module, name):
        raise Failure(f"{module.replace('.', '/')}.py: there is no class `{name}`")

    def has(self, name):
        return callable(getattr(self.instance, name, None))

    def functions(self):
        """Its functions, by role. What is alive can be asked about at any time, so it has a call that lasts for as long as it lives."""
        found = lambda names: [function for name, function in names.items() if self.has(name)]
        functions = {"lifecycle": found(LIFE), "streaming_channel": found(STREAM), "subscriber": [], "service": []}
        functions["channel"] = found(CHANNEL) if self.has("send_to_user") or self.has("send_message") else []
        functions["setup"] = list(SETUP.values()) if self.has("get_setup_schema") else []
        functions["agent"] = ["invoke"] if self.has("get_agent_descriptor") and self.has("invoke") else []
        functions["commands"] = ["run"] if self.has("get_commands") and self.has("run_command") else []
        functions["renderer"] = found(RENDER)
        functions["scheduler"] = ["execute-task"] if self.has("execute_task") or self.repeats() else []
        if functions["channel"] and "send-to-user" not in functions["channel"]:
            functions["channel"].insert(0, "send-to-user")
        if functions["lifecycle"] or functions["channel"] or self.has("run_background") or self.repeats():
            functions["service"] = ["run-background"]
            functions["subscriber"] = ["on-event"]
        return {role: names for role, names in functions.items() if names}

    def repeats(self):
        return self.has("get_schedule") and self.has("execute")

    def methods(self):
        """Its other public methods, for the extensions that depend on it."""
        own = set(OURS)
        own |= {"invoke"} if self.has("get_agent_descriptor") else set()
        own |= {"execute"} if self.has("get_schedule") else set()
        names = [it for it in dir(type(self.instance)) if not it.startswith("_") and it not in own]
        methods = [(it, inspect.getattr_static(type(self.instance), it)) for it in names]
        methods = [(it, found) for it, found in methods if callable(found) or isinstance(found, (staticmethod, classmethod))]
        methods = [(it, found) for it, found in methods if not isinstance(found, type)]
        return [{"name": it, "description": (inspect.getdoc(getattr(self.instance, it)) or "").split("\n")[0]} for it, _ in methods]

    def described(self):
        """What is known once it is initialised: tools, an agent, a context provider's place."""
        welcome = {"tools": [it.sheet for it in self.tools().values()]}
        agent = self.agent_descriptor()
        if agent:
            kind = "handoff" if getattr(agent, "integration_mode", "tool") == "handoff" else "agent"
            welcome[kind] = {"name": self.agent_name(agent), "description": str(getattr(agent, "description", "") or "")}
            if getattr(agent, "effects", None) is not None:
                welcome[kind]["effects"] = checked_effects(agent.effects, lambda: "`effects` of the agent's descriptor")
        welcome["hooks"] = [point for point in POINTS if self.has(point)]
        if self.has("get_commands"):
            welcome["commands"] = plain(self.now(self.instance.get_commands()))
        if self.has("get_context"):
            priority = getattr(self.instance, "context_priority", 100)
            priority = priority() if callable(priority) else priority
            welcome["hooks"].append("context")
            welcome["priorities"] = {"context": 100 if priority is None else int(priority)}
        return welcome

    def tools(self):
        if self.table is None:
            all_tools = self.now(self.instance.get_tools()) if self.has("get_tools") else []
            made = [ClassTool.of(it) for it in all_tools or [] if getattr(it, "is_enabled", True) is not False]
            if self.has("get_mcp_servers"):
                from .mcp_servers import server_tools

                made += server_tools(self.context.extension_id, self.instance, self.wire)
            self.table = {it.sheet["name"]: it for it in made}
        return self.table

    def now(self, result):
        """A result; one that is still to come is waited for."""
        if not hasattr(result, "__await__"):
            return result
        from .wire import whole

        return asyncio.run_coroutine_threadsafe(whole(result), self.wire.running_loop()).result()

    def agent_descriptor(self):
        return self.now(self.instance.get_agent_descriptor()) if self.has("get_agent_descriptor") and self.has("invoke") else None

    def agent_name(self, agent):
        """A tool's name: the agent's, as far as it can be one."""
        name = re.sub(r"[^a-zA-Z0-9_-]+", "_", str(getattr(agent, "name", "") or "")).strip("_")
        return name or self.context.extension_id

    # Its life.

    async def initialize(self):
        await settled(self.instance.initialize(self.context))
        self.initialised, self.table = True, None

    async def start(self):
        await settled(self.instance.start())

    async def stop(self):
        await settled(self.instance.stop())

    async def destroy(self):
        await settled(self.instance.destroy())

    def health(self):
        return verdict(self.instance.health_check())

    async def service(self, function, arguments):
        """Lasts as long as the extension does, so that it can ask the host at any time."""
        tasks = [self.instance.run_background()] if self.has("run_background") else []
        tasks += [self.repeat()] if self.repeats() else []
        running = [asyncio.ensure_future(settled(it)) for it in tasks]
        try:
            await asyncio.gather(*running)
            await asyncio.Event().wait()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def repeat(self):
        """Runs `execute` whenever `get_schedule` says so. The host reads the schedule and the clock."""
        while True:
            next_one = await self.wire.ask_later("schedule.next", {"when": self.instance.get_schedule()})
            if next_one["next"] is None:
                return
            await self.wire.ask_later("schedule.wait", {"until": next_one["next"]})
            try:
                result = plain(await settled(self.instance.execute()))
                if isinstance(result, dict) and result.get("text"):
                    await self.context.notify_user(result["text"])
            except Exception:
                self.context.logger.exception("`execute` failed")

    # What is asked of it.

    def tool(self, call, tool, arguments, turn):
        return self.tools()[tool].call({"call": call, "arguments": arguments, "turn": turn})

    async def invoked(self, task, context):
        takes = len(inspect.signature(self.instance.invoke).parameters)
        return answer_of(await settled(self.instance.invoke(task, context) if takes > 1 else self.instance.invoke(task)))

    def agent(self, function, arguments):
        turn = arguments.get("turn") or {}
        about = {f"{name}_id": turn.get(name) for name in ("session", "user", "channel", "agent")}
        about |= {name: turn.get(name) for name in ("user_message", "correlation_id", "conversation_summary")}
        return self.invoked(arguments["task"], AgentInvocationContext(**about, metadata={"turn": turn.get("turn")}))

    def task(self, task):
        return self.instance.execute_task(task) if self.has("execute_task") else self.instance.execute()

    def hook(self, point, subject, turn, **more):
        if point == "context":
            return self.injected(subject, turn)
        return getattr(self.instance, point)(revived({"point": point, "subject": subject, "turn": turn, **more}))

    def commands(self, function, arguments):
        return self.instance.run_command(arguments["name"], arguments["arguments"])

    def renderer(self, function, arguments):
        shown = arguments["arguments" if function == "render-call" else "result"]
        return getattr(self.instance, function.replace("-", "_"))(arguments["tool"], shown)

    async def injected(self, prompt, turn):
        about = TurnContext(turn["agent"], turn["channel"], turn["user"], turn["session"])
        text = await settled(self.instance.get_context(prompt, about))
        return {"decision": "inject", "content": text} if text else None

    def channel(self, function, arguments):
        user, delivery = arguments.get("user"), arguments.get("delivery")
        if function == "send-file":
            return with_delivery(self.instance.send_file, delivery)(user, sent_file(arguments["file"]))
        text = arguments["text"]
        if function == "send-question":
            return with_delivery(self.instance.send_question, delivery)(user, text, arguments["choices"])
        if function == "send-message" or not self.has("send_to_user"):
            return with_delivery(self.instance.send_message, delivery)(text)
        return with_delivery(self.instance.send_to_user, delivery)(user, text)

    def streaming_channel(self, function, arguments):
        name = f"on_stream_{function.removeprefix('stream-')}"
        said = [arguments[it] for it in ("chunk", "status", "text") if it in arguments][:1]
        shown = with_delivery(getattr(self.instance, name), arguments.get("delivery"))
        return shown(arguments.get("user"), *said)

    async def subscriber(self, function, arguments):
        event = event_of(arguments)
        handlers = self.context._taking(event.topic)
        if not handlers and self.has("on_event"):
            handlers = [(self.instance.on_event, lambda event: event)]
        failed = None
        for handler, form in handlers:
            try:
                await settled(handler(form(event)))
            except Exception as error:
                # Such an event is not delivered again, and nobody waits for it.
                if event.topic in IN_MEMORY or failed is not None:
                    self.context.logger.exception("the handler of `%s` failed", event.topic)
                else:
                    failed = error
        if failed is not None:
            raise failed

    # The services that it shares. Each is an object that `create_service` returns, and is kept here.

    async def create(self, name, arguments):
        if not self.has("create_service"):
            raise Failure(f"`{self.context.extension_id}` shares no services: it has no method `create_service`")
        made = await settled(self.instance.create_service(name, arguments))
        if made is None:
            raise Failure(f"there is no service `{name}`")
        self.services[name] = made
        describe = getattr(made, "describe", None)
        return plain(await settled(describe())) if callable(describe) else None

    def call(self, name, method, arguments):
        service = self.services.get(name)
        function = None if method.startswith("_") else getattr(service, method, None)
        if not callable(function):
            raise Failure(f"the service `{name}` has no method `{method}`")
        return bound_call(function, method, arguments)

    async def dispose(self, name):
        service = self.services.pop(name, None)
        end = next((it for it in ("dispose", "aclose", "close") if callable(getattr(service, it, None))), None)
        if end is not None:
            await settled(getattr(service, end)())

    def scheduler(self, function, arguments):
        return self.task(**arguments)

    async def setup(self, function, arguments):
        if function == "schema":
            return plain(await settled(self.instance.get_setup_schema()))
        if function == "apply" and self.has("apply_config"):
            for name, value in arguments.items():
                await settled(self.instance.apply_config(name, await self.revealed(name, value)))
        if function == "complete" and self.has("on_setup_complete"):
            result = await settled(self.instance.on_setup_complete())
            ready, word = result if isinstance(result, (tuple, list)) else (result, "")
            if not ready:
                raise Failure(word or "the setup is not complete")
            return word or "everything is there"

    async def revealed(self, name, value):
        """A value that the user set. A secret arrives as its name, and its value is read with a host call."""
        if value == f"secret:{self.context.extension_id}/{name}":
            return await self.wire.ask_later("secret.get", name)
        return value if isinstance(value, str) else str(plain(value))

    def api(self, method, arguments):
        if method in SERVICES:
            return getattr(self, SERVICES[method])(**arguments)
        function = None if method.startswith("_") or method in LIFE else getattr(self.instance, method, None)
        if not callable(function):
            raise Failure(f"`{self.context.extension_id}` has no method `{method}`")
        return bound_call(function, method, arguments)


def check_config(instance, extension, config):
    """A class may say with `ConfigModel`, a model of `pydantic`, which configuration it takes."""
    model = getattr(type(instance), "ConfigModel", None)
    if model is None:
        return
    try:
        model.model_validate(config)
    except Exception as error:
        if not callable(getattr(error, "errors", None)):
            raise
        wrong = [f"`extensions.{'.'.join(map(str, (extension, *it['loc'])))}`: {it['msg']}" for it in error.errors()]
        raise Failure("; ".join(["the configuration does not fit the class's `ConfigModel`", *wrong])) from error


def agent_turn(params):
    """The turn of an agent's invocation, which is among its arguments."""
    return params["arguments"].get("turn") if params.get("role") == "agent" else None


def with_delivery(method, delivery):
    """A method of a channel that gets `delivery`, if it takes that: the delivery's `id`, and `repeat` if it may have been made before."""
    if delivery is None:
        return method
    parameters = inspect.signature(method).parameters.values()
    takes = any(it.name == "delivery" or it.kind is it.VAR_KEYWORD for it in parameters)
    return functools.partial(method, delivery=delivery) if takes else method


def bound_call(function, method, arguments):
    """Calls a method with the arguments of another extension, each as the type that is annotated."""
    positional, named = arguments if isinstance(arguments, list) else [], arguments if isinstance(arguments, dict) else {}
    if isinstance(named.get("*"), list):
        named = dict(named)
        positional = named.pop("*")
    try:
        bound = inspect.signature(function).bind(*positional, **named)
        hints = typing.get_type_hints(function, include_extras=True)
    except TypeError as error:
        raise Failure(f"`{method}`: {error}", INVALID) from error
    known = inspect.signature(function).parameters
    for name, value in bound.arguments.items():
        if known[name].kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            bound.arguments[name] = typed(value, hints.get(name, typing.Any))
    return function(*bound.args, **bound.kwargs)


async def settled(result):
    return await result if hasattr(result, "__await__") else result


def verdict(health):
    """Whether the extension is healthy; no answer counts as healthy."""
    if hasattr(health, "__await__"):

        async def later():
            return verdict(await health)

        return later()
    return health is None or bool(health)


def answer_of(response):
    """The answer of an agent: its text, or the whole value if it has none."""
    failed = getattr(response, "error", None) or getattr(response, "success", True) is False
    for name in ("content", "text", "output", "response", "message", "result", "final_output"):
        said = getattr(response, name, None)
        if isinstance(said, str) and said and not failed:
            return {"text": said, "hand_back": True} if getattr(response, "hand_back", False) is True else said
    if failed:
        raise Failure(str(getattr(response, "error", None) or "the agent has failed"))
    return plain(response)


def only_class(module):
    """The extension's class, if the entry point does not name it."""
    classes = [it for it in vars(module).values() if isinstance(it, type) and it.__module__ == module.__name__]
    named = [it for it in classes if it.__name__.endswith("Extension")] or [it for it in classes if not it.__name__.startswith("_")]
    if len(named) != 1:
        names = ", ".join(it.__name__ for it in named) or "none"
        raise Failure(f"{os.path.basename(module.__file__)}: which class is the extension? There are: {names}. Write `entrypoint: module:Class`.")
    return named[0]
