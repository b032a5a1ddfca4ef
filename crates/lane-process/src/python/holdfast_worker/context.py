"""The context of an extension that is a class: its only interface to the host."""

import contextvars
import inspect
import json
import logging
import os
import pathlib
import re
import sys

from .contract import Event, TurnContext
from .conversations import Conversations
from .models import AgentRegistry, ModelRouter, given
from .wire import Failure

LEVELS = ((logging.ERROR, "error"), (logging.WARNING, "warning"), (logging.INFO, "info"), (0, "debug"))
# The turn of the current call.
TURN = contextvars.ContextVar("turn", default=None)


class HostLog(logging.Handler):
    """Sends log lines to the host."""

    def __init__(self, wire):
        super().__init__()
        self.wire = wire

    def emit(self, record):
        level = next(name for least, name in LEVELS if record.levelno >= least)
        self.wire.say(method="log", params={"level": level, "text": self.format(record)})


class Secret(str):
    """The value of a secret, which may also be awaited."""

    def __await__(self):
        return str(self)
        yield


class Nothing:
    """An awaitable `None`."""

    def __await__(self):
        return None
        yield


def is_awaited(frame):
    """Whether the call in a frame is preceded by `await`."""
    from opcode import opmap

    code, place = frame.f_code.co_code, frame.f_lasti + 2
    while place < len(code) and code[place] == opmap.get("CACHE", -1):
        place += 2
    return place < len(code) and code[place] == opmap["GET_AWAITABLE"]


class Record(dict):
    """An object in another extension's answer: its fields are keys and attributes."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def revived(value):
    if isinstance(value, dict):
        return Record({name: revived(it) for name, it in value.items()})
    return [revived(it) for it in value] if isinstance(value, list) else value


class Proxy:
    """Another extension. Each of its methods is a coroutine here, and calls the active generation."""

    def __init__(self, wire, extension):
        self._wire, self._extension = wire, extension

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)

        async def method(*positional, **named):
            arguments = {**({"*": list(positional)} if positional else {}), **named} if named else list(positional)
            return revived(await self._wire.ask_later(*self._call(name, arguments)))

        method.__name__ = method.__qualname__ = name
        return method

    def _call(self, name, arguments):
        return "api.call", {"extension": self._extension, "method": name, "arguments": arguments}

    def __repr__(self):
        return f"<extension {self._extension}>"


class Service(Proxy):
    """A service that another extension shares. Each of its methods is a coroutine here."""

    def __init__(self, wire, key, report):
        super().__init__(wire, key)
        self.report = report

    def _call(self, name, arguments):
        return "service.call", {"key": self._extension, "method": name, "arguments": arguments}

    def __repr__(self):
        return f"<service {self._extension}>"


class ResolvedTool:
    """A tool that this extension's agent has. A call of it runs as a model's call of it would: checked, judged and recorded."""

    def __init__(self, wire, sheet):
        self._wire, self.extension = wire, sheet["extension"]
        self.name, self.description, self.effects = sheet["name"], sheet["description"], sheet["effects"]
        self.params_json_schema = sheet["input_schema"]

    async def __call__(self, *positional, **arguments):
        names = list(self.params_json_schema.get("properties") or {})
        if len(positional) > len(names):
            raise TypeError(f"`{self.name}` takes {len(names)} arguments, and {len(positional)} were given")
        arguments = {**dict(zip(names, positional)), **arguments}
        return revived(await self._wire.ask_later("tool.invoke", {"tool": self.name, "arguments": arguments}))

    async def on_invoke_tool(self, context, arguments):
        """The same with the arguments as a text of JSON, as the package `agents` calls tools."""
        result = await self(**json.loads(arguments or "{}"))
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)

    def __repr__(self):
        return f"<tool {self.name}>"


class ExtensionContext(Conversations):
    """The interface of an extension to the host."""

    def __init__(self, wire, hello):
        self._wire, self._manifest = wire, hello.get("manifest") or {}
        self.extension_id, self.config = hello["id"], hello["config"]
        self._data_dir, self._handlers = hello["data_dir"], []
        self.logger = logging.getLogger(f"ext.{self.extension_id}")
        self.logger.setLevel(logging.DEBUG)
        logging.getLogger().addHandler(HostLog(wire))

    # Itself.

    @property
    def data_dir(self):
        path = pathlib.Path(self._data_dir)
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def extension_dir(self):
        """The folder of its files, which it cannot change."""
        return pathlib.Path(os.getcwd())

    def get_config(self, key, default=None):
        return self.config.get(key, default)

    def get_secret(self, name):
        """A granted secret, or `None`. With or without `await`."""
        return secret(self._wire, secret_name(self.extension_id, name), self.logger.warning, sys._getframe(1))

    async def set_secret(self, name, value):
        """Stores a secret of its own, encrypted. An empty value removes it."""
        kept = {"name": secret_name(self.extension_id, name), "value": value or ""}
        await self._wire.ask_later("secret.keep", kept)

    async def get_service(self, key, arguments=None):
        """A service that another extension shares, by its key `<extension>/<name>`. It is created if it does not exist."""
        report = await self._wire.ask_later("service.get", {"key": key, "arguments": arguments})
        return Service(self._wire, key, revived(report))

    def get_extension(self, extension_id):
        """Another extension, if the manifest has it under `depends_on`."""
        depends_on = self._manifest.get("depends_on") or []
        return Proxy(self._wire, extension_id) if extension_id in depends_on else None

    @property
    def turn(self):
        """The current turn: `session`, `turn`, `agent`, `channel` and `user`. `None` outside a turn."""
        return None if TURN.get() is None else Record(TURN.get())

    async def ask(self, name, arguments=None):
        """A host call by name: `clock`, `state.get`, `ui`."""
        return await self._wire.ask_later(name, arguments)

    def ask_and_wait(self, name, arguments=None):
        """The same for a plain function."""
        return self._wire.ask(name, arguments)

    # Events.

    async def emit(self, topic, payload=None, correlation_id=None):
        event = {"topic": topic, "payload": {} if payload is None else payload}
        if correlation_id is not None:
            event["correlation"] = str(correlation_id)
        await self._wire.ask_later("event.publish", event)

    def subscribe_event(self, topic, handler):
        """The handler gets an `Event`."""
        self._subscribe(topic, handler, lambda event: event)

    def subscribe(self, event, handler):
        """The handler gets the payload as a mapping, which has the event's fields as attributes."""
        self._subscribe(event, handler, mapping_of)

    def _subscribe(self, topic, handler, form):
        self._handlers.append((topic, handler, form))
        failed = lambda why: self.logger.error("`%s` cannot be subscribed to: %s", topic, why)
        self._wire.tell("event.subscribe", {"topic": topic}, failed)

    async def purge_scheduled_events(self, schedule_id, schedule_type):
        """How many events of a schedule were taken back: none, because what is published is delivered."""
        return 0

    def unsubscribe(self, event, handler):
        self._handlers = [it for it in self._handlers if it[:2] != (event, handler)]
        if all(other != event for other, *_ in self._handlers):
            failed = lambda why: self.logger.error("`%s` cannot be unsubscribed from: %s", event, why)
            self._wire.tell("event.unsubscribe", {"topic": event}, failed)

    unsubscribe_event = unsubscribe

    def _taking(self, topic):
        """The handlers of a topic, each with the form in which it takes events."""
        return [(it, form) for pattern, it, form in self._handlers if matches(pattern.split("."), topic.split("."))]

    # The user and the agent.

    async def on_user_message(self, text, user_id="user", channel=None, **more):
        """A message of a user on this channel. The answer is passed to `send_to_user`."""
        payload = {"text": text, "user_id": str(user_id), "channel_id": self.extension_id, **more}
        await self._wire.ask_later("event.publish", {"topic": "user.message", "payload": payload})

    async def notify_user(self, text, channel_id=None):
        await self._wire.ask_later("user.notify", given(text=text, channel=channel_id))

    async def request_agent_task(self, prompt, channel_id=None):
        await self._wire.ask_later("agent.task", given(task=prompt, channel=channel_id))

    async def request_agent_background(self, prompt, correlation_id=None):
        await self._wire.ask_later("agent.background", given(task=prompt, correlation=correlation_id))

    async def invoke_agent(self, prompt):
        """The main agent's answer. Where there is none, the text says so: `(Error: …)`."""
        try:
            answer = await self._wire.ask_later("agent.invoke", {"task": prompt})
        except Failure as failure:
            return self._unanswered(failure)
        return answer if isinstance(answer, str) else str(answer)

    def _unanswered(self, failure):
        self.logger.error("the agent did not answer: %s", failure)
        return f"(Error: {failure})"

    # An answer that nobody is shown is a child session's, like any other.
    invoke_agent_background = invoke_agent

    async def invoke_agent_streamed(self, prompt, on_chunk=None, on_tool_call=None):
        """The main agent's answer. `on_chunk` gets the text as it is written, `on_tool_call` the name of each tool that the agent calls
        and, if it takes two, the arguments. Both may be coroutines. Where the answer ends with an error, `(Error: …)` follows what was
        written before."""
        written = []

        async def updated(update):
            if "text" in update:
                written.append(update["text"])
                told = on_chunk(update["text"]) if on_chunk is not None else None
            else:
                called = (update["tool"], revived(update["arguments"]))
                told = on_tool_call(*called[: taken(on_tool_call)]) if on_tool_call is not None else None
            if hasattr(told, "__await__"):
                await told

        try:
            answer = await self._wire.ask_streamed("agent.invoke", {"task": prompt}, updated)
        except Failure as failure:
            if not written:
                return self._unanswered(failure)
            await updated({"text": f"\n{self._unanswered(failure)}"})
            return "".join(written)
        return answer if isinstance(answer, str) else str(answer)

    async def enrich_prompt(self, prompt, agent_id=None, turn_context=None):
        """The prompt with the text of the context providers before it. The agent is named by its id, or by a turn's context."""
        turn = agent_id if isinstance(agent_id, TurnContext) else turn_context
        agent_id = getattr(turn, "agent_id", None) if turn is not None else agent_id
        return await self._wire.ask_later("context.enrich", given(prompt=prompt, agent=agent_id))

    # The program.

    def request_restart(self):
        self._wish("system.restart")

    def request_shutdown(self):
        self._wish("system.shutdown")

    def _wish(self, name):
        self._wire.tell(name, {}, lambda why: self.logger.error("%s: %s", name, why))

    # Agents.

    @property
    def agent_id(self):
        return self._manifest.get("agent_id") or self.extension_id

    def _described(self):
        return self._wire.ask("agent.describe", {})

    @property
    def agent_model(self):
        """The model that its agent uses: the one in the settings, or else in the manifest."""
        return self._described()["models"][0]

    @property
    def resolved_instructions(self):
        """`prompt.jinja2`, rendered, the manifest's instructions and those in the settings."""
        return self._described()["instructions"]

    @property
    def resolved_tools(self):
        """The tools of the extensions under `uses_tools` that are active."""
        return [ResolvedTool(self._wire, sheet) for sheet in self._described()["tools"]]

    @property
    def model_router(self):
        declared = self._manifest.get("agent_config")
        return ModelRouter(self._wire, declared if isinstance(declared, dict) else None, self.logger.warning)

    @property
    def default_agent_id(self):
        """The agent that answers users."""
        return "main"

    @property
    def agent_registry(self):
        """The agents that can be asked."""
        return AgentRegistry(self._wire)


def secret_name(extension, name):
    """The name of a secret as the host has it. A name with dots, which is one of the extension's own, is written without them."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name.removeprefix(f"{extension}.")) if "." in name else name


def secret(wire, name, warn, frame):
    """A granted secret, or `None`, for the function in this frame."""
    try:
        return Secret(wire.ask("secret.get", name))
    except Failure as failure:
        if (failure.data or {}).get("code") != "HF-1609":
            warn("no secret `%s`: %s", name, failure)
    return Nothing() if is_awaited(frame) else None


def taken(function):
    """How many of a tool's name and arguments a function takes."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return 1
    return 2


def matches(pattern, topic):
    """`*` matches one word, `>` at the end one or more."""
    if pattern and pattern[0] == ">":
        return len(topic) > 0
    if not pattern or not topic:
        return not pattern and not topic
    return pattern[0] in ("*", topic[0]) and matches(pattern[1:], topic[1:])


class EventMapping(Record):
    """A payload as a mapping. The event's fields are attributes."""


def event_of(handed):
    fields = {name: handed[name] for name in ("id", "topic", "payload", "key", "attempt", "repeat", "source") if name in handed}
    created_at = handed["at"] / 1000 if handed.get("at") is not None else 0.0
    return Event(correlation_id=handed.get("correlation"), created_at=created_at, **fields)


def mapping_of(event):
    """An event for a handler of `subscribe`: what it has to say is its payload."""
    if not isinstance(event.payload, dict):
        return event
    mapping = EventMapping(revived(event.payload))
    mapping.__dict__.update(vars(event), status=event.status, retry_count=event.retry_count)
    return mapping
