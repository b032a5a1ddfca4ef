"""Runs a plain Python file as an extension: `worker.py tool|channel FILE`.

A tool's file has `run`, a channel's `connect`, `recv` and `send`. Nothing in them is of this program; `Message` is there when they use it.
Needs Python 3.10 and its standard library. What the file prints goes to standard error, so that it cannot get between the messages.
"""

import asyncio
import builtins
import collections.abc
import contextvars
import dataclasses
import enum
import importlib.util
import inspect
import json
import os
import re
import sys
import threading
import traceback
import types
import typing

PROTOCOL = "0.1"
INVALID = -32602


@dataclasses.dataclass
class Message:
    """What passes between a channel and the agent."""

    text: str
    sender: str
    channel: str
    metadata: typing.Optional[dict] = None


# Types as JSON Schema, and values as types.

SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
LISTS = (list, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Set)
MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
UNIONS = (typing.Union, getattr(types, "UnionType", typing.Union))


def is_typed_dict(kind):
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__total__")


def is_model(kind):
    return isinstance(kind, type) and hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate")


def parts(kind):
    """A type without `Annotated`, `Required` and the like, its origin, its arguments, and what `Annotated` says of it."""
    remark = None
    while True:
        origin = typing.get_origin(kind)
        if origin is typing.Annotated:
            remark = next((it for it in kind.__metadata__ if isinstance(it, str)), remark)
            kind = kind.__origin__
        elif getattr(origin, "_name", None) in ("Required", "NotRequired", "ReadOnly"):
            kind = typing.get_args(kind)[0]
        elif hasattr(kind, "__supertype__"):
            kind = kind.__supertype__
        else:
            return kind, origin, typing.get_args(kind), remark


def schema_of(kind):
    kind, origin, inner, remark = parts(kind)
    schema = plain_schema(kind, origin, inner)
    return {**schema, "description": remark} if remark else schema


def plain_schema(kind, origin, inner):
    if kind in (inspect.Parameter.empty, typing.Any, object):
        return {}
    if kind is None:
        return {"type": "null"}
    if kind in SIMPLE:
        return {"type": SIMPLE[kind]}
    if origin in UNIONS:
        options = [schema_of(it) for it in inner]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [member.value for member in kind]}
    if is_model(kind):
        return kind.model_json_schema()
    if is_typed_dict(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        return object_schema({name: schema_of(hint) for name, hint in hints.items()}, sorted(kind.__required_keys__))
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        missing = dataclasses.MISSING
        fields = [field for field in dataclasses.fields(kind) if field.init]
        required = [it.name for it in fields if it.default is missing and it.default_factory is missing]
        return object_schema({it.name: schema_of(hints[it.name]) for it in fields}, required)
    container = origin or kind
    if container is tuple:
        if not inner:
            return {"type": "array"}
        if inner[-1] is Ellipsis:
            return {"type": "array", "items": schema_of(inner[0])}
        items = [schema_of(it) for it in inner]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if container in LISTS:
        schema = {"type": "array", "items": schema_of(inner[0])} if inner else {"type": "array"}
        return {**schema, "uniqueItems": True} if container in (set, frozenset) else schema
    if container in MAPPINGS:
        values = schema_of(inner[1]) if len(inner) == 2 else {}
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    return {}


def object_schema(properties, required):
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def typed(value, kind):
    """A JSON value as what the annotation asks for; left as it is where that is not clear."""
    kind, origin, inner, _ = parts(kind)
    if origin in UNIONS:
        for option in inner:
            if fits(value, option):
                return typed(value, option)
        return value
    if is_model(kind):
        return kind.model_validate(value)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(value)
    container = origin or kind
    if isinstance(value, dict):
        if dataclasses.is_dataclass(kind):
            hints = typing.get_type_hints(kind, include_extras=True)
            return kind(**{name: typed(it, hints.get(name, typing.Any)) for name, it in value.items()})
        if is_typed_dict(kind):
            hints = typing.get_type_hints(kind, include_extras=True)
            return {name: typed(it, hints.get(name, typing.Any)) for name, it in value.items()}
        if container in MAPPINGS and len(inner) == 2:
            return {typed(name, inner[0]): typed(it, inner[1]) for name, it in value.items()}
    if isinstance(value, list):
        if container is tuple:
            kinds = [inner[0]] * len(value) if inner and inner[-1] is Ellipsis else list(inner)
            kinds += [typing.Any] * (len(value) - len(kinds))
            return tuple(typed(it, kind) for it, kind in zip(value, kinds))
        if container in LISTS:
            items = [typed(it, inner[0]) if inner else it for it in value]
            return container(items) if container in (set, frozenset) else items
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def fits(value, kind):
    kind, origin, inner, _ = parts(kind)
    if kind in (None, type(None)):
        return value is None
    if kind is typing.Any:
        return True
    if origin is typing.Literal:
        return value in inner
    if origin in UNIONS:
        return any(fits(value, it) for it in inner)
    if kind in (str, int, float, bool):
        if isinstance(value, bool) or kind is bool:
            return isinstance(value, bool) and kind is bool
        return isinstance(value, (int, float) if kind is float else kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return any(member.value == value for member in kind)
    container = origin or kind
    if dataclasses.is_dataclass(kind) or is_typed_dict(kind) or is_model(kind) or container in MAPPINGS:
        return isinstance(value, dict)
    return isinstance(value, list) if container in LISTS or container is tuple else True


def plain(value):
    """A value as JSON has it."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(mode="json"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, collections.abc.Mapping):
        return {str(plain(name)): plain(it) for name, it in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(it) for it in (sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value)]
    return str(value)


# Docstrings.

REST = re.compile(r"^\s*:param(?:\s+[^:]+?)?\s+(\w+)\s*:\s*(.*)$")
GOOGLE = re.compile(r"^\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.+)$")
NUMPY = re.compile(r"^\s*(\w+)\s*(?::.*)?$")


def documented(text):
    """What a docstring says of the function, and of each parameter: Google's, NumPy's and reStructuredText's ways."""
    lines = inspect.cleandoc(text or "").split("\n")
    said, about, section, name = [], {}, None, None
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        bare = line.strip().rstrip(":").lower()
        rest = REST.match(line)
        if rest:
            section, name = "rest", rest.group(1)
            about[name] = rest.group(2)
        elif line.strip().startswith(":") and re.match(r"^\s*:\w+", line):
            section = "over"
        elif bare in ("args", "arguments", "parameters", "params") and line.strip().endswith(":"):
            section = "google"
        elif bare == "parameters" and set(following.strip()) == {"-"}:
            section = "numpy"
        elif section in ("google", "numpy") and line and not line[0].isspace() and (
            line.strip().endswith(":") or set(following.strip()) == {"-"}
        ):
            section = "over"
        elif section == "google" and GOOGLE.match(line):
            name, words = GOOGLE.match(line).groups()
            about[name] = words
        elif section == "numpy" and set(line.strip()) == {"-"}:
            continue
        elif section == "numpy" and line and not line[0].isspace() and NUMPY.match(line):
            name = NUMPY.match(line).group(1)
            about.setdefault(name, "")
        elif section in ("google", "numpy", "rest") and line.strip() and name:
            about[name] = f"{about[name]} {line.strip()}".strip()
        elif section is None:
            said.append(line)
    return "\n".join(said).strip(), about


def signature(function):
    """The JSON Schema of a function's arguments, and the annotation of each."""
    hints = typing.get_type_hints(function, include_extras=True)
    _, about = documented(function.__doc__)
    properties, required, kinds = {}, [], {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        kinds[name] = hints.get(name, parameter.annotation)
        schema = schema_of(kinds[name])
        if about.get(name) and "description" not in schema:
            schema = {**schema, "description": about[name]}
        if parameter.default is parameter.empty:
            required.append(name)
        elif json_value(parameter.default):
            schema = {**schema, "default": plain(parameter.default)}
        properties[name] = schema
    return object_schema(properties, required), kinds


def json_value(value):
    return value is None or isinstance(value, (str, bool, int, float, enum.Enum, list, dict, tuple))


# The conversation.

CALL = contextvars.ContextVar("call")


class Failure(Exception):
    """Something that is told to whoever called."""

    def __init__(self, message, code=1):
        super().__init__(message)
        self.code = code


class Wire:
    """Messages to the host and from it."""

    def __init__(self, output, serve):
        self.output, self.serve = output, serve
        self.lock, self.asked, self.waiting, self.running = threading.Lock(), 0, {}, {}

    def say(self, **message):
        line = (json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n").encode()
        with self.lock:
            self.output.write(line)
            self.output.flush()

    async def ask(self, name, **arguments):
        self.asked += 1
        number, answer = self.asked, asyncio.get_running_loop().create_future()
        self.waiting[number] = answer
        self.say(id=number, method="ask", params={"call": CALL.get(), "name": name, "arguments": arguments})
        return await answer

    async def talk(self):
        loop, heard = asyncio.get_running_loop(), asyncio.Queue()

        def listen():
            for line in sys.stdin.buffer:
                loop.call_soon_threadsafe(heard.put_nowait, line)
            loop.call_soon_threadsafe(heard.put_nowait, None)

        threading.Thread(target=listen, daemon=True).start()
        while (line := await heard.get()) is not None:
            message = json.loads(line)
            if "method" not in message:
                answer = self.waiting.pop(message["id"])
                if not answer.done():
                    error = message.get("error")
                    answer.set_exception(Failure(error["message"])) if error else answer.set_result(message["result"])
            elif message["method"] == "cancel":
                task = self.running.get(message["params"]["id"])
                if task:
                    task.cancel()
            else:
                self.running[message["id"]] = asyncio.create_task(self.answer(message))

    async def answer(self, message):
        number = message["id"]
        CALL.set(number)
        try:
            result = await self.serve(message["method"], message.get("params"))
            self.say(id=number, result=plain(result))
        except asyncio.CancelledError:
            self.say(id=number, error={"code": 1, "message": "cancelled"})
        except Failure as failure:
            self.say(id=number, error={"code": failure.code, "message": str(failure)})
        except BaseException as error:
            traceback.print_exc()
            self.say(id=number, error={"code": 1, "message": described(error)})
        finally:
            self.running.pop(number, None)


def described(error):
    """An exception in one line, with its place in the extension's own file."""
    if isinstance(error, SyntaxError):
        place = f" ({os.path.basename(error.filename or '')}, line {error.lineno})"
        return f"{type(error).__name__}: {error.msg}{place}"
    frames = [it for it in traceback.extract_tb(error.__traceback__) if it.filename != __file__]
    own = [it for it in frames if it.filename.startswith(os.getcwd())] or frames
    place = f" ({os.path.basename(own[-1].filename)}, line {own[-1].lineno})" if own else ""
    said = str(error)
    return f"{type(error).__name__}: {said}{place}" if said else f"{type(error).__name__}{place}"


async def called(function, *positional, **named):
    """Calls a function of either kind; one that blocks does so on a thread of its own."""
    if inspect.iscoroutinefunction(function):
        return await function(*positional, **named)
    result = await asyncio.to_thread(function, *positional, **named)
    return await result if inspect.isawaitable(result) else result


class Tool:
    """A file with `run`."""

    def __init__(self, module, name):
        self.run, self.name = wanted(module, "run"), name
        said, _ = documented(self.run.__doc__ or module.__doc__)
        schema, self.kinds = signature(self.run)
        sheet = {"name": name, "description": said, "input_schema": schema}
        self.welcome = {"protocol": PROTOCOL, "tools": [sheet]}

    async def serve(self, method, params):
        try:
            given = {name: typed(it, self.kinds.get(name, typing.Any)) for name, it in params["arguments"].items()}
        except Exception as error:
            raise Failure(f"the arguments make no sense: {error}", INVALID) from error
        return await called(self.run, **given)


class Channel:
    """A file with `connect`, `recv` and `send`."""

    def __init__(self, module, name):
        self.connect, self.recv, self.send = (wanted(module, it) for it in ("connect", "recv", "send"))
        self.name, self.wire = name, None
        functions = {"service": ["run-background"], "channel": ["send-to-user"]}
        self.welcome = {"protocol": PROTOCOL, "functions": functions}

    async def serve(self, method, params):
        if params["function"] == "run-background":
            await called(self.connect)
            while True:
                message = await called(self.recv)
                payload = {"text": message.text, "user_id": message.sender, "channel_id": self.name}
                await self.wire.ask("event.publish", topic="user.message", payload=payload)
        arguments = params["arguments"]
        message = Message(arguments["text"], arguments["user"], self.name, {"delivery": arguments["delivery"]})
        return await called(self.send, message)


def wanted(module, name):
    function = getattr(module, name, None)
    if not callable(function):
        sys.exit(f"{os.path.basename(module.__file__)}: there is no function `{name}`")
    return function


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main():
    kind, path = sys.argv[1:3]
    name = os.path.splitext(os.path.basename(path))[0]
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    builtins.Message = Message
    sys.path.insert(0, os.getcwd())
    try:
        module = load(os.path.abspath(path), name)
        it = {"tool": Tool, "channel": Channel}[kind](module, name)
    except Exception as error:
        traceback.print_exc()
        sys.exit(described(error))

    async def serve(method, params):
        return it.welcome if method == "hello" else await it.serve(method, params)

    it.wire = Wire(output, serve)
    asyncio.run(it.wire.talk())


if __name__ == "__main__":
    main()
