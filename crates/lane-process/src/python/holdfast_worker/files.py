"""Plain files as extensions: a tool has `run`, a channel has `connect`, `recv` and `send`. They import nothing of this program;
`Message`, `get_secret` and `get_setting` are builtins if they use them."""

import builtins
import os
import sys

from .docstrings import documented
from .imports import load_file
from .signatures import Signature, checked_effects, is_async
from .wire import INVALID, Failure

PROTOCOL = "0.1"


class Settings:
    """The settings of a file, from the first `hello` on."""

    def __init__(self):
        self.config = {}

    def get_setting(self, name, default=None):
        return self.config.get(name, default)


def module_of(path, name, wire, settings):
    """The module of a file. Each builtin is defined only if the file or a helper beside it uses it."""
    folder = os.path.dirname(path)
    texts = [text_of(os.path.join(folder, it)) for it in os.listdir(folder) if it.endswith(".py")]
    used = lambda word: any(word in text for text in texts)
    if used(b"Message"):
        from .message import Message

        builtins.Message = Message
    if used(b"get_setting"):
        builtins.get_setting = settings.get_setting
    if used(b"get_secret"):
        from .context import secret

        warn = lambda text, *more: print(text % more, file=sys.stderr)
        builtins.get_secret = lambda name: secret(wire, name, warn, sys._getframe(1))
    return load_file(path, name)


def text_of(path):
    with open(path, "rb") as file:
        return file.read()


def wanted(module, name):
    function = getattr(module, name, None)
    if not callable(function):
        raise Failure(f"{os.path.basename(module.__file__)}: there is no function `{name}`")
    return function


def assigned_at(path):
    """The file and the line that assigns `__effects__`."""
    with open(path, "rb") as file:
        lines = enumerate(file.read().split(b"\n"), 1)
    line = next((number for number, text in lines if text.startswith(b"__effects__")), 1)
    return f"`__effects__` ({os.path.basename(path)}, line {line})"


class Tool:
    """A file with `run`."""

    def __init__(self, path, wire):
        self.name, self.settings = os.path.splitext(os.path.basename(path))[0], Settings()
        module = module_of(path, self.name, wire, self.settings)
        self.run = wanted(module, "run")
        self.signature = Signature(self.run)
        said = self.signature.description or documented(module.__doc__)[0]
        sheet = {"name": self.name, "description": said, "input_schema": self.signature.schema}
        if hasattr(module, "__effects__"):
            sheet["effects"] = checked_effects(module.__effects__, lambda: assigned_at(path))
        self.welcome = {"protocol": PROTOCOL, "tools": [sheet]}

    def serve(self, method, params):
        if method == "hello":
            self.settings.config = params["config"]
            return self.welcome
        try:
            given = self.signature.arguments(params["arguments"])
        except Exception as error:
            raise Failure(f"invalid arguments: {error}", INVALID) from error
        return self.run(**given)


class Channel:
    """A file with `connect`, `recv` and `send`."""

    def __init__(self, path, wire):
        self.name, self.wire, self.metadata = os.path.splitext(os.path.basename(path))[0], wire, {}
        self.settings = Settings()
        module = module_of(path, self.name, wire, self.settings)
        self.connect, self.recv, self.send = (wanted(module, it) for it in ("connect", "recv", "send"))
        said = documented(module.__doc__)[0] or documented(self.connect.__doc__)[0]
        functions = {"service": ["run-background"], "channel": ["send-to-user"]}
        self.send_file = getattr(module, "send_file", None)
        if callable(self.send_file):
            functions["channel"].append("send-file")
        self.send_question = getattr(module, "send_question", None)
        if callable(self.send_question):
            functions["channel"].append("send-question")
        self.welcome = {"protocol": PROTOCOL, "description": said, "functions": functions}

    def serve(self, method, params):
        if method == "hello":
            self.settings.config = params["config"]
            return self.welcome
        if params["function"] == "run-background":
            return self.live()
        from .message import Message, sent_file

        arguments = params["arguments"]
        if params["function"] == "send-file":
            return self.send_file(sent_file(arguments["file"]), arguments.get("user"))
        if params["function"] == "send-question":
            return self.send_question(arguments["text"], arguments["choices"], arguments["user"])
        # The metadata of a user's message, such as a thread or chat id, is passed back with the answer.
        metadata = {**self.metadata.get(arguments["user"], {}), "delivery": arguments["delivery"]}
        return self.send(Message(arguments["text"], arguments["user"], self.name, metadata))

    async def live(self):
        await called(self.connect)
        while True:
            message = await called(self.recv)
            if not hasattr(message, "text") or not hasattr(message, "sender"):
                raise Failure(f"`recv` returned {message!r}, which is not a Message")
            sender, metadata = str(message.sender), getattr(message, "metadata", None) or {}
            self.metadata[sender] = metadata
            payload = {"text": message.text, "user_id": sender, "channel_id": self.name}
            if metadata.get("message_id") is not None:
                payload["message_id"] = str(metadata["message_id"])
            await self.wire.ask_later("event.publish", {"topic": "user.message", "payload": payload})


async def called(function, *arguments):
    """Calls a coroutine function, or a blocking function on its own thread."""
    if is_async(function):
        return await function(*arguments)
    result = await sys.modules["asyncio"].to_thread(function, *arguments)
    return await result if hasattr(result, "__await__") else result
