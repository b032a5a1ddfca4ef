"""The roles of a class as protocols: a class with these methods has the role, whether it names the protocol or not."""

import dataclasses
import enum
from typing import Any, Optional, Protocol, runtime_checkable

__all__ = [
    "AgentDescriptor", "AgentInvocationContext", "AgentProvider", "AgentResponse", "ChannelProvider", "ContextProvider", "Event",
    "Extension", "ExtensionState", "SchedulerProvider", "ServiceProvider", "SetupProvider", "StreamingChannelProvider", "ToolProvider", "TurnContext",
]  # fmt: skip


class ExtensionState(enum.Enum):
    """The state of an extension."""

    INACTIVE = "inactive"
    ACTIVE = "active"
    ERROR = "error"


@runtime_checkable
class Extension(Protocol):
    async def initialize(self, context: Any) -> None: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def destroy(self) -> None: ...
    def health_check(self) -> bool: ...


@runtime_checkable
class ToolProvider(Protocol):
    def get_tools(self) -> list: ...


@runtime_checkable
class ChannelProvider(Protocol):
    async def send_to_user(self, user_id: str, message: str) -> None: ...


@runtime_checkable
class StreamingChannelProvider(Protocol):
    async def on_stream_start(self, user_id: str) -> None: ...
    async def on_stream_chunk(self, user_id: str, chunk: str) -> None: ...
    async def on_stream_status(self, user_id: str, status: str) -> None: ...
    async def on_stream_end(self, user_id: str, full_text: str) -> None: ...


@runtime_checkable
class SchedulerProvider(Protocol):
    async def execute_task(self, task_name: str) -> Optional[dict]: ...


@runtime_checkable
class ServiceProvider(Protocol):
    async def run_background(self) -> None: ...


@runtime_checkable
class SetupProvider(Protocol):
    def get_setup_schema(self) -> list: ...
    async def apply_config(self, name: str, value: str) -> None: ...
    async def on_setup_complete(self) -> tuple: ...


@dataclasses.dataclass(frozen=True)
class TurnContext:
    """The turn of a call."""

    agent_id: Optional[str] = None
    channel_id: Optional[str] = None
    user_id: Optional[str] = None
    session_id: Optional[str] = None
    thread_id: Optional[str] = None

    def __post_init__(self):
        # A thread is a session.
        for name, it in (("session_id", self.thread_id), ("thread_id", self.session_id)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, it)


@runtime_checkable
class ContextProvider(Protocol):
    @property
    def context_priority(self) -> int: ...
    async def get_context(self, prompt: str, turn_context: TurnContext) -> Optional[str]: ...


@dataclasses.dataclass(init=False, repr=False, eq=False)
class Open:
    """A dataclass whose objects may have other fields, too: the documents list them only in part."""

    def __init__(self, *positional, **named):
        fields = dataclasses.fields(self)
        self.__dict__.update({it.name: it.default for it in fields if it.default is not dataclasses.MISSING})
        self.__dict__.update({it.name: it.default_factory() for it in fields if it.default_factory is not dataclasses.MISSING})
        self.__dict__.update(zip([it.name for it in fields], positional))
        self.__dict__.update(named)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={it!r}' for name, it in vars(self).items())})"

    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None

    def model_dump(self, mode=None):
        return dict(vars(self))


@dataclasses.dataclass(init=False, repr=False, eq=False)
class AgentDescriptor(Open):
    """The description of an agent for a model. `integration_mode` is `tool` or `handoff`."""

    name: str = ""
    description: str = ""
    integration_mode: str = "tool"


@dataclasses.dataclass(init=False, repr=False, eq=False)
class AgentInvocationContext(Open):
    """The context of an agent's invocation."""

    conversation_summary: Optional[str] = None
    user_message: Optional[str] = None
    correlation_id: Optional[str] = None
    session_id: Optional[str] = None
    user_id: Optional[str] = None
    channel_id: Optional[str] = None
    agent_id: Optional[str] = None
    metadata: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(init=False, repr=False, eq=False)
class AgentResponse(Open):
    """The answer of an agent: `AgentResponse("success", "text")`, or the text alone."""

    status: str = "success"
    content: str = ""
    error: Optional[str] = None
    tokens_used: Optional[int] = None
    turns_used: Optional[int] = None
    data: Any = None
    metadata: dict = dataclasses.field(default_factory=dict)

    def __init__(self, *positional, **named):
        if positional and positional[0] not in ("success", "error", "refused"):
            others = [it.name for it in dataclasses.fields(self) if it.name != "content"]
            named, positional = {"content": positional[0], **dict(zip(others, positional[1:])), **named}, ()
        super().__init__(*positional, **named)


@runtime_checkable
class AgentProvider(Protocol):
    def get_agent_descriptor(self) -> AgentDescriptor: ...
    async def invoke(self, task: str, context: Optional[AgentInvocationContext] = None) -> AgentResponse: ...


@dataclasses.dataclass
class Event:
    """A published event."""

    topic: str
    payload: Any = None
    correlation_id: Optional[str] = None
    id: str = ""
    key: Optional[str] = None
    attempt: int = 1
    repeat: bool = False
    source: str = ""
    created_at: float = 0.0

    @property
    def status(self):
        return "processing"

    @property
    def retry_count(self):
        return self.attempt - 1
