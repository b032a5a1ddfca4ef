"""The context of an extension that is a class: its only interface to the host."""

import contextvars
import logging
import pathlib
import sys

from .contract import Event
from .wire import Failure

LEVELS = ((logging.ERROR, "error"), (logging.WARNING, "warning"), (logging.INFO, "info"), (0, "debug"))
# The turn of the current call.
TURN = contextvars.ContextVar("turn", default=None)
# Topic names of older extensions.
TOPICS = {"user_message": "user.message", "agent_response": "channel.out.*"}


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
            call = {"extension": self._extension, "method": name, "arguments": arguments}
            return revived(await self._wire.ask_later("api.call", call))

        method.__name__ = method.__qualname__ = name
        return method

    def __repr__(self):
        return f"<extension {self._extension}>"


class ModelRouter:
    """The name of the model that an agent uses."""

    def __init__(self, own, model):
        self.own, self.model = own, model

    def get_model(self, agent_id=None):
        return self.model if agent_id in (None, self.own) else "default"


class ExtensionContext:
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

    def get_config(self, key, default=None):
        return self.config.get(key, default)

    def get_secret(self, name):
        """A granted secret, or `None`. With or without `await`."""
        try:
            return Secret(self._wire.ask("secret.get", name))
        except Failure as failure:
            if (failure.data or {}).get("code") != "HF-1609":
                self.logger.warning("no secret `%s`: %s", name, failure)
        return Nothing() if is_awaited(sys._getframe(1)) else None

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
        topic = TOPICS.get(topic, topic)
        self._handlers.append((topic, handler))
        failed = lambda why: self.logger.error("`%s` cannot be subscribed to: %s", topic, why)
        self._wire.tell("event.subscribe", {"topic": topic}, failed)

    def subscribe(self, event, handler):
        self.subscribe_event(event, handler)

    def unsubscribe(self, event, handler):
        topic = TOPICS.get(event, event)
        self._handlers = [it for it in self._handlers if it != (topic, handler)]
        if all(other != topic for other, _ in self._handlers):
            failed = lambda why: self.logger.error("`%s` cannot be unsubscribed from: %s", topic, why)
            self._wire.tell("event.unsubscribe", {"topic": topic}, failed)

    unsubscribe_event = unsubscribe

    def _taking(self, topic):
        """The handlers of a topic."""
        return [handler for pattern, handler in self._handlers if matches(pattern.split("."), topic.split("."))]

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
        answer = await self._wire.ask_later("agent.invoke", {"task": prompt})
        return answer if isinstance(answer, str) else str(answer)

    async def invoke_agent_streamed(self, prompt, on_chunk=None, on_tool_call=None):
        """The answer comes in one piece."""
        answer = await self.invoke_agent(prompt)
        if on_chunk is not None:
            told = on_chunk(answer)
            if hasattr(told, "__await__"):
                await told
        return answer

    async def enrich_prompt(self, prompt, agent_id=None):
        """The prompt with the text of the context providers before it."""
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

    @property
    def _agent(self):
        return self._manifest.get("agent") or {}

    @property
    def agent_model(self):
        return self._agent.get("model")

    @property
    def resolved_instructions(self):
        prompt = pathlib.Path("prompt.jinja2")
        both = [prompt.read_text() if prompt.is_file() else "", self._agent.get("instructions") or ""]
        return "\n\n".join(it.strip() for it in both if it.strip())

    @property
    def resolved_tools(self):
        uses = self._agent.get("uses_tools") or []
        if uses:
            missing = "the tools of other extensions cannot be handed to a program: `resolved_tools` is not there"
            raise NotImplementedError(f"{missing} for {', '.join(uses)}. `invoke_agent` runs the main agent with its tools.")
        return []

    @property
    def model_router(self):
        configured = self._manifest.get("agent_config") or {}
        return ModelRouter(self.agent_id, self.agent_model or configured.get("model") or "default")


def given(**arguments):
    return {name: it for name, it in arguments.items() if it is not None}


def matches(pattern, topic):
    """`*` matches one word, `>` at the end one or more."""
    if pattern and pattern[0] == ">":
        return len(topic) > 0
    if not pattern or not topic:
        return not pattern and not topic
    return pattern[0] in ("*", topic[0]) and matches(pattern[1:], topic[1:])


def event_of(handed):
    fields = {name: handed[name] for name in ("id", "topic", "payload", "key", "attempt", "repeat") if name in handed}
    return Event(correlation_id=handed.get("correlation"), **fields)
