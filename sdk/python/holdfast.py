"""Holdfast extensions in Python. A tool is a function with a decorator, and so is a hook:

    from holdfast import tool, tool_gate, allow, deny

    @tool(effects="pure")
    def count_words(text: str) -> int:
        \"\"\"Counts the words of a text.\"\"\"
        return len(text.split())

    @tool_gate
    def no_deletions(call):
        return deny("nothing is deleted here") if call.tool == "delete" else allow()

Type hints become the JSON Schema that a model sees, docstrings the descriptions. What the host offers is in `log`, `config`,
`state` and the other objects of that kind below. `holdfast ext build` makes the component; it looks for what is imported
from here, so import names rather than `*`.
"""

import dataclasses
import enum
import inspect
import json
import types
import typing

_tools = {}
_commands = {}
_methods = {}
_hooks = {}
_agent = None
_setup = None
_host = {}


class Failure(Exception):
    """Why there is no result. The text is for the model and the user."""

    kind = "failed"


class InvalidArguments(Failure):
    """The arguments are invalid."""

    kind = "invalid_arguments"


class Denied(Failure):
    """It was refused."""

    kind = "denied"


class NotFound(Failure):
    """The requested item does not exist."""

    kind = "not_found"


@dataclasses.dataclass
class ToolCall:
    """A tool call as a hook sees it."""

    id: int
    tool: str
    arguments: dict


@dataclasses.dataclass
class Answer:
    """The decision of a gate, a guardrail or a sanitizer. Created by the functions below."""

    word: str
    value: typing.Any = None


def allow():
    """Allows the call or text."""
    return Answer("allow")


def deny(reason):
    """Refuses the call."""
    return Answer("deny", reason)


def ask(reason):
    """Asks a person to decide about the call."""
    return Answer("ask", reason)


def flag(reason):
    """Allows the text, with a remark."""
    return Answer("flag", reason)


def block(reason):
    """Blocks the text."""
    return Answer("block", reason)


def unchanged():
    """Leaves the text unchanged, from a sanitizer."""
    return Answer("unchanged")


def replace(content):
    """Replaces the text, from a sanitizer: by text, or by any JSON value."""
    return Answer("replace", content)


@dataclasses.dataclass
class Route:
    """A model's name, from `model_route`."""

    model: str
    reason: str = ""
    authoritative: bool = False


@dataclasses.dataclass
class Modification:
    """Other arguments or another implementation, from `tool_modify`."""

    arguments: typing.Optional[dict] = None
    implementation: typing.Optional[str] = None


@dataclasses.dataclass
class Artifact:
    """Something attached to a tool's result."""

    name: str
    media_type: str
    content: typing.Any


@dataclasses.dataclass
class Enrichment:
    """Another result, artifacts and render hints, from `tool_after`."""

    result: typing.Any = None
    artifacts: list = dataclasses.field(default_factory=list)
    render: typing.Any = None


@dataclasses.dataclass
class Plan:
    """What a summary must keep, from `compaction_before`."""

    instructions: typing.Optional[str] = None
    keep: typing.Optional[int] = None


@dataclasses.dataclass
class Event:
    """An event as `on_event` gets it. One that comes again has the same id."""

    id: str
    topic: str
    payload: typing.Any
    key: typing.Optional[str]
    correlation: typing.Optional[str]
    attempt: int
    repeat: bool


@dataclasses.dataclass
class File:
    """A file that a channel sends."""

    name: str
    media_type: str
    content: bytes


@dataclasses.dataclass
class _Function:
    """A decorated function."""

    name: str
    description: str
    call: typing.Callable
    parameters: dict
    schema: dict
    effects: str = "unknown"
    timeout_ms: typing.Optional[int] = None
    output_schema: typing.Optional[dict] = None


_EFFECTS = ("unknown", "pure", "read", "write", "exec", "network")


def tool(function=None, *, name=None, description=None, effects="unknown", timeout_ms=None, output_schema=None):
    """A tool that a model may call. `effects` is one of unknown, pure, read, write, exec, network."""
    if effects not in _EFFECTS:
        raise ValueError(f"effects is {effects!r}; it is one of {', '.join(_EFFECTS)}")

    def add(function):
        entry = _function(function, name, description)
        entry.effects, entry.timeout_ms, entry.output_schema = effects, timeout_ms, output_schema
        _tools[entry.name] = entry
        return function

    return add(function) if function else add


def command(function=None, *, name=None, description=None):
    """A slash command: a function from the rest of the line to an answer."""

    def add(function):
        _commands[name or function.__name__] = (_summary(function, description), function)
        return function

    return add(function) if function else add


def method(function=None, *, name=None, description=None):
    """A method that other extensions may call."""

    def add(function):
        entry = _function(function, name, description)
        _methods[entry.name] = entry
        return function

    return add(function) if function else add


def agent(function=None, *, id=None, description=None, integration="tool"):
    """An agent: a function from a task to an answer. `integration` is `tool` or `handoff`."""

    def add(function):
        global _agent
        _agent = (id or function.__name__, _summary(function, description), integration, function)
        return function

    return add(function) if function else add


def _hook(name, says):
    def decorator(function):
        if name in _hooks:
            raise ValueError(f"there are two functions for {name}")
        _hooks[name] = function
        return function

    decorator.__name__ = name
    decorator.__doc__ = says
    return decorator


initialize = _hook("initialize", "Once, before anything else: f()")
start = _hook("start", "Begin: f()")
stop = _hook("stop", "End: f()")
destroy = _hook("destroy", "Free what is held: f()")
health_check = _hook("health_check", "Is it well: f() -> bool")
session_start = _hook("session_start", "A session began: f()")
session_end = _hook("session_end", "A session ended: f()")
session_cancel = _hook("session_cancel", "A turn was cancelled: f()")
turn_start = _hook("turn_start", "A turn begins: f()")
turn_end = _hook("turn_end", "A turn is about to end: f(answer or None)")
input_normalise = _hook("input_normalise", "May rewrite the user's text: f(text) -> text or None")
sanitize_input = _hook("sanitize_input", "f(text) -> unchanged(), replace(), flag() or block()")
guard_input = _hook("guard_input", "f(text) -> allow(), flag() or block()")
context = _hook("context", "Adds to the system role: f(prompt) -> str or None")
model_route = _hook("model_route", "Names a model: f(prompt) -> Route or None")
tool_modify = _hook("tool_modify", "f(call) -> Modification or None")
tool_gate = _hook("tool_gate", "f(call) -> allow(), deny() or ask()")
tool_after = _hook("tool_after", "f(call, result) -> Enrichment or None")
sanitize_result = _hook("sanitize_result", "f(call, result) -> unchanged(), replace(), flag() or block()")
guard_result = _hook("guard_result", "f(call, result) -> allow(), flag() or block()")
sanitize_output = _hook("sanitize_output", "f(answer) -> unchanged(), replace(), flag() or block()")
guard_output = _hook("guard_output", "f(answer) -> allow(), flag() or block()")
guard_chunk = _hook("guard_chunk", "f(chunk) -> allow(), flag() or block()")
response_process = _hook("response_process", "Rewrites the answer: f(answer) -> text or None")
compaction_before = _hook("compaction_before", "f() -> Plan or None")
compaction_provide = _hook("compaction_provide", "Writes the summary: f(messages) -> str or None")
render_call = _hook("render_call", "f(tool, arguments) -> Markdown or None")
render_result = _hook("render_result", "f(tool, result) -> Markdown or None")
execute_task = _hook(
    "execute_task", "Runs a task of the manifest's schedules: f(task) -> a value or None; {'text': …} tells the user that text"
)
on_event = _hook("on_event", "Takes an event: f(event)")
run_background = _hook("run_background", "A loop until the extension stops: f(). Between two waits it has the budget of one call")
send_to_user = _hook("send_to_user", "A channel: f(user, text, delivery), and delivery has `id` and `repeat`")
send_message = _hook("send_message", "A channel that knows whom to write to: f(text, delivery)")
send_file = _hook("send_file", "A channel that sends files: f(user or None, file, delivery)")
send_question = _hook("send_question", "A channel with buttons: f(user, text, choices, delivery); each has `label` and `answer`")


def streaming_channel(channel):
    """A class, or an object, that shows an answer while it is written: `start(user, id)`, `chunk(user, id, text)`,
    `status(user, id, status)` and `end(user, id, text, delivery)`. The text at the end is what counts."""
    made = channel() if inspect.isclass(channel) else channel
    for name in ("start", "chunk", "status", "end"):
        _hook(f"stream_{name}", "")(getattr(made, name))
    return channel


def setup(parameters):
    """A class, or an object, with the parameters that the extension needs: `schema()` gives a list of `{name, description, secret,
    required}`, `apply(values)` takes answers over, a secret as its reference, and `complete()` gives a word for the user, or
    raises what is missing."""
    global _setup
    if _setup is not None:
        raise ValueError("there are two setups")
    _setup = parameters() if inspect.isclass(parameters) else parameters
    return parameters


class _Interface:
    """An interface of the host. `ext build` links it if the source or the grants name it."""

    def __init__(self, name):
        self._name = name

    def _linked(self):
        linked = _host.get(self._name)
        if linked is None:
            raise Failure(f"the host interface {self._name} is not linked; import it from holdfast by its name")
        return linked


class _Log(_Interface):
    def debug(self, message):
        self._linked().line("debug", message)

    def info(self, message):
        self._linked().line("info", message)

    def warning(self, message):
        self._linked().line("warning", message)

    def error(self, message):
        self._linked().line("error", message)


class _Config(_Interface):
    def get(self, name, default=None):
        value = self._linked().get(name)
        return default if value is None else json.loads(value)

    def all(self):
        return json.loads(self._linked().all())


class _Session(_Interface):
    def current(self):
        return self._linked().current()


class _State(_Interface):
    def get(self, key, default=None):
        value = self._linked().get(key)
        return default if value is None else json.loads(value)

    def set(self, key, value):
        self._linked().set(key, _json(value))

    def remove(self, key):
        self._linked().set(key, None)


class _Messages(_Interface):
    def inject(self, text):
        self._linked().inject(text)


class _Clock(_Interface):
    def now(self):
        return self._linked().now()


class _Random(_Interface):
    def bytes(self, count):
        return self._linked().bytes(count)


class _Events(_Interface):
    def publish(self, topic, payload, key=None):
        self._linked().publish(topic, _json(payload), key)

    def publish_event(self, topic, payload=None, key=None, correlation=None, idempotency=None):
        """With everything that an event can have; gives its id."""
        event = self._linked().NewEvent(topic, _json(payload), key, correlation, idempotency)
        return self._linked().publish_event(event)


class _Subscriptions(_Interface):
    def subscribe(self, topic):
        self._linked().subscribe(topic)

    def unsubscribe(self, topic):
        self._linked().unsubscribe(topic)


class _Ui(_Interface):
    def select(self, prompt, options):
        return self._linked().select(prompt, options)

    def confirm(self, prompt):
        return self._linked().confirm(prompt)

    def input(self, prompt):
        return self._linked().input(prompt)

    def custom(self, kind, prompt, payload):
        value = self._linked().custom(kind, prompt, _json(payload))
        return None if value is None else json.loads(value)


class _Secrets(_Interface):
    def reference(self, name):
        return self._linked().reference(name)

    def get(self, name):
        """The value. Prefer the reference, which the host replaces on its way out."""
        return self._linked().get(name)

    def keep(self, name, value):
        """Stores a secret of the extension; an empty value removes it."""
        self._linked().keep(name, value)


class _Timers(_Interface):
    def wait_until(self, moment):
        return self._linked().wait_until(moment)

    def next_due(self, when, timezone=None):
        return self._linked().next_due(when, timezone)


class _Extensions(_Interface):
    def call(self, extension, method, arguments=None):
        return _value(self._linked().call(extension, method, _json(arguments)))


class _Services(_Interface):
    def get(self, key, arguments=None):
        return _value(self._linked().get(key, _json(arguments)))

    def call(self, key, method, arguments=None):
        return _value(self._linked().call(key, method, _json(arguments)))


class Invocation:
    """An agent at work. Iterate for what happens meanwhile: `{"text": …}`, or `{"tool": …, "arguments": …}`. It is cancelled if it is
    closed before its end."""

    def __init__(self, host, invocation):
        self._host, self._invocation = host, invocation

    def __iter__(self):
        return self

    def __next__(self):
        update = self._invocation.next()
        if update is None:
            raise StopIteration
        if isinstance(update, self._host.Update_Text):
            return {"text": update.value}
        return {"tool": update.value.tool, "arguments": json.loads(update.value.arguments)}

    def answer(self):
        """Waits until the agent has finished, and gives its answer."""
        return _value(self._host.in_its_words(self._invocation.answer))

    def close(self):
        self._invocation.__exit__(None, None, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class _Agents(_Interface):
    def invoke(self, task, agent=None):
        return _value(self._linked().invoke(agent, task))

    def invoke_streamed(self, task, agent=None):
        """The same, to be followed; gives an `Invocation`."""
        host = self._linked()
        return Invocation(host, host.invoke_streamed(agent, task))

    def task(self, task, agent=None, channel=None, user=None, correlation=None):
        return self._linked().task(agent, task, self._linked().Recipient(channel, user, correlation))

    def background(self, task, agent=None, channel=None, user=None, correlation=None):
        return self._linked().background(agent, task, self._linked().Recipient(channel, user, correlation))

    def list(self):
        """The agents that can be asked."""
        return json.loads(self._linked().list())

    def invoke_tool(self, tool, arguments=None):
        """Runs a tool that the extension's agent has."""
        return _value(self._linked().invoke_tool(tool, _json(arguments)))

    def invoke_model(self, prompt, instructions="", agent=None):
        """Asks the model that an agent uses; gives its text."""
        return self._linked().invoke_model(prompt, instructions, agent)


class _Channels(_Interface):
    def notify(self, text, channel=None, user=None):
        return self._linked().notify(text, channel, user)

    def list(self):
        """`ids`, and `default_id` or None."""
        return self._linked().list()


class _Prompts(_Interface):
    def enrich(self, prompt, agent=None):
        return self._linked().enrich(prompt, agent)

    def describe_agent(self, agent=None):
        """An agent's models; of the extension's own also its instructions, tools, limits and parameters."""
        return json.loads(self._linked().describe_agent(agent))


class _Conversations(_Interface):
    def list_threads(self, thread=None, channel=None, project=None, archived=False):
        filter = self._linked().ThreadFilter(thread, channel, project, archived)
        return json.loads(self._linked().list_threads(filter))

    def update_thread(self, thread, changes):
        """`changes`: `title` and `project`, which None removes, `archived`, and `channel` to create a conversation."""
        return json.loads(self._linked().update_thread(thread, _json(changes)))

    def history(self, thread):
        return json.loads(self._linked().history(thread))

    def list_projects(self):
        return json.loads(self._linked().list_projects())

    def update_project(self, fields, project=None):
        """Changes a project, or creates one if none is named."""
        return json.loads(self._linked().update_project(project, _json(fields)))

    def remove_project(self, project):
        self._linked().remove_project(project)


class _Results(_Interface):
    def read(self, call, offset, limit):
        """A dict with `text`, `offset`, `end` and `total`; the call is the id that a hook was given."""
        return json.loads(self._linked().read(call, offset, limit))


class _Discovery(_Interface):
    def find_tools(self, query, limit=None):
        return json.loads(self._linked().find_tools(query, limit))

    def list_capabilities(self):
        return json.loads(self._linked().list_capabilities())


class _Maintenance(_Interface):
    def open(self):
        return json.loads(self._linked().open())

    def show(self, extension):
        return json.loads(self._linked().show(extension))

    def apply(self, extension, name, value):
        return json.loads(self._linked().apply(extension, name, _json(value)))

    def doctor(self, extension=None):
        return json.loads(self._linked().doctor(extension))


class _System(_Interface):
    def restart(self, reason=None):
        self._linked().restart(reason)


class _Http(_Interface):
    def send(self, url, method="GET", headers=(), body=b"", timeout_ms=None):
        """Sends a request; `headers` is a dict or a list of pairs. Gives `status`, `headers` and `body`, which is bytes."""
        pairs = list(headers.items() if hasattr(headers, "items") else headers)
        body = body.encode() if isinstance(body, str) else bytes(body)
        return self._linked().send(self._linked().Request(method, url, pairs, body, timeout_ms))


class _Files(_Interface):
    def read(self, path):
        return bytes(self._linked().read(path))

    def read_text(self, path):
        return self.read(path).decode()

    def write(self, path, content):
        self._linked().write(path, content.encode() if isinstance(content, str) else bytes(content))

    def list(self, path):
        """Entries with `name`, `kind` and `size`."""
        return self._linked().list(path)

    def stat(self, path):
        return self._linked().stat(path)

    def remove(self, path):
        self._linked().remove(path)

    def make_folder(self, path):
        self._linked().make_folder(path)


class _Environment(_Interface):
    def get(self, name, default=None):
        value = self._linked().get(name)
        return default if value is None else value


log = _Log("log")
config = _Config("config")
session = _Session("session")
state = _State("state")
messages = _Messages("messages")
clock = _Clock("clock")
random = _Random("random")
events = _Events("events")
ui = _Ui("ui")
secrets = _Secrets("secrets")
subscriptions = _Subscriptions("subscriptions")
timers = _Timers("timers")
extensions = _Extensions("extensions")
services = _Services("services")
agents = _Agents("agents")
channels = _Channels("channels")
prompts = _Prompts("prompts")
conversations = _Conversations("conversations")
results = _Results("results")
discovery = _Discovery("discovery")
maintenance = _Maintenance("maintenance")
system = _System("system")
http = _Http("http")
files = _Files("files")
environment = _Environment("environment")


def _summary(function, description):
    text = description or inspect.cleandoc(function.__doc__ or "").split("\n\n")[0]
    if not text:
        raise ValueError(f"{function.__name__} does not say what it does: give it a docstring")
    return " ".join(text.split())


def _function(function, name, description):
    hints = typing.get_type_hints(function, include_extras=True)
    said = _parameter_docs(function.__doc__ or "")
    properties, required, parameters = {}, [], {}
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name, typing.Any)
        schema = _schema(hint)
        if parameter.name in said:
            schema["description"] = said[parameter.name]
        if parameter.default is not inspect.Parameter.empty:
            if parameter.default is not None:
                schema["default"] = _plain(parameter.default)
        elif not _optional(hint):
            required.append(parameter.name)
        properties[parameter.name] = schema
        parameters[parameter.name] = (hint, parameter.default)
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    summary = _summary(function, description)
    return _Function(name or function.__name__, summary, function, parameters, schema)


def _parameter_docs(doc):
    """Lines such as `text: what it is` below `Args:`."""
    said, inside = {}, False
    for line in inspect.cleandoc(doc).splitlines():
        if line.strip() in ("Args:", "Arguments:", "Parameters:"):
            inside = True
        elif inside and line.startswith(" ") and ":" in line:
            name, text = line.split(":", 1)
            said[name.strip()] = text.strip()
        elif line.strip():
            inside = False
    return said


def _arms(hint):
    """The parts of a union."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return None


def _optional(hint):
    if typing.get_origin(hint) is typing.Annotated:
        return _optional(typing.get_args(hint)[0])
    return type(None) in (_arms(hint) or ())


_WORDS = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def _schema(hint):
    """The JSON Schema of a type hint."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        text = next((text for text in arguments[1:] if isinstance(text, str)), None)
        return _schema(arguments[0]) | ({"description": text} if text else {})
    if hint in _WORDS:
        return {"type": _WORDS[hint]}
    arms = _arms(hint)
    if arms:
        arms = [arm for arm in arms if arm is not type(None)]
        return _schema(arms[0]) if len(arms) == 1 else {"anyOf": [_schema(arm) for arm in arms]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (list, set, tuple) or hint in (list, set, tuple):
        items = [argument for argument in arguments if argument is not Ellipsis]
        return {"type": "array"} | ({"items": _schema(items[0])} if items else {})
    if origin is dict or hint is dict:
        return {"type": "object"} | ({"additionalProperties": _schema(arguments[1])} if arguments else {})
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        fields = dataclasses.fields(hint)
        bare = [
            field.name
            for field in fields
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        ]
        schema = {"type": "object", "properties": {field.name: _schema(hints[field.name]) for field in fields}}
        return schema | {"required": bare, "additionalProperties": False}
    return {}


def _read(hint, value):
    """Converts a JSON value to its type hint. The schema was checked before."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _read(arguments[0], value)
    arms = _arms(hint)
    if arms:
        arms = [arm for arm in arms if arm is not type(None)]
        return _read(arms[0], value) if len(arms) == 1 and value is not None else value
    if origin is list and arguments:
        return [_read(arguments[0], item) for item in value]
    if origin is dict and arguments:
        return {key: _read(arguments[1], item) for key, item in value.items()}
    if hint is float:
        return float(value)
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return hint(value)
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        return hint(**{name: _read(hints[name], item) for name, item in value.items()})
    return value


def _call(entry, arguments):
    """Calls a tool or a method with arguments as JSON."""
    given = json.loads(arguments)
    named = {}
    for name, (hint, default) in entry.parameters.items():
        if name in given:
            named[name] = _read(hint, given[name])
        elif default is inspect.Parameter.empty:
            if not _optional(hint):
                raise InvalidArguments(f"`{name}` is missing")
            named[name] = None
    return entry.call(**named)


def _plain(value):
    """Converts a value to JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, tuple)):
        return list(value)
    return value


def _value(content):
    """A content of the host as a value: its text, or what its JSON says."""
    return json.loads(content.value) if type(content).__name__ == "Content_Json" else content.value


def _json(value):
    return json.dumps(_plain(value), default=_plain, ensure_ascii=False)
