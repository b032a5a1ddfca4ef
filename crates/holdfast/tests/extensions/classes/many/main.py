"""A class with every role, in the shape that assistant4 has them."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import helper
from agents import RunContextWrapper, function_tool
from core.extensions.contract import (
    AgentDescriptor,
    AgentInvocationContext,
    AgentProvider,
    AgentResponse,
    ChannelProvider,
    ContextProvider,
    Event,
    Extension,
    SchedulerProvider,
    ServiceProvider,
    SetupProvider,
    StreamingChannelProvider,
    ToolProvider,
    TurnContext,
)
from core.extensions.context import ExtensionContext
from sandbox.extensions.many.helper import shout


@dataclass
class Point:
    x: int
    y: int = 2


class ManyExtension:
    def __init__(self) -> None:
        self._ctx: Any = None
        self._task: Any = None
        self._beats = 0
        self._looping = False
        self._token = None

    async def initialize(self, context: ExtensionContext) -> None:
        self._ctx = context
        self._token = await context.get_secret("MANY_TOKEN")
        self._kv = context.get_extension("kv")
        await self._kv.set("many/started", {"at": 1})
        context.subscribe_event("many.alert", self._on_alert)

    async def start(self) -> None:
        self._task = asyncio.create_task(self._poll())

    async def stop(self) -> None:
        self._task.cancel()
        self._note("stopped")

    async def destroy(self) -> None:
        self._note("destroyed")

    def health_check(self) -> bool:
        return not self._task.done()

    def _note(self, text: str) -> None:
        with open(self._ctx.data_dir / "notes", "a") as file:
            file.write(text + "\n")

    async def _poll(self) -> None:
        folder = self._ctx.data_dir / "in"
        folder.mkdir(exist_ok=True)
        while True:
            for path in folder.iterdir():
                text = path.read_text()
                path.unlink()
                await self._ctx.on_user_message(text=text, user_id="123456", channel=self)
            await asyncio.sleep(0.02)

    async def _on_alert(self, event: Event) -> None:
        self._note(f"alert {event.topic} {event.payload['text']} {event.correlation_id}")
        await self._ctx.notify_user(f"alert: {event.payload['text']}")

    def get_tools(self) -> list[Any]:
        @function_tool(name_override="many_greet")
        async def greet(ctx: RunContextWrapper[Any], name: str, times: int = 1) -> str:
            """Greets somebody.

            Args:
                name: Whom.
            """
            return f"{self._ctx.get_config('greeting')} {name} " * times

        @function_tool
        def many_point(point: Point) -> Point:
            """Moves a point."""
            return Point(point.x + 1, point.y + 1)

        @function_tool(failure_error_function=lambda ctx, error: f"sorry: {error}", strict_mode=False)
        async def many_sorry(why: str) -> str:
            """Fails, and says so."""
            raise ValueError(why)

        async def many_fail(text: str) -> str:
            """A plain function."""
            raise ValueError(shout(text))

        async def many_facts() -> dict:
            """What it knows of itself."""
            ctx = self._ctx
            return {
                "id": ctx.extension_id, "config": ctx.config, "missing": ctx.get_config("missing", 7), "data": ctx.data_dir.is_dir(),
                "instructions": ctx.resolved_instructions, "model": ctx.agent_model, "agent": ctx.agent_id,
                "tools": ctx.resolved_tools, "router": ctx.model_router.get_model(ctx.agent_id), "logger": ctx.logger.name,
                "stranger": ctx.get_extension("stranger"), "started": await self._kv.get("many/started"),
                "nothing": await self._kv.get("many/nothing"), "token": bool(self._token), "sync": ctx.get_secret("MANY_TOKEN") is None,
                "protocols": [it.__name__ for it in PROTOCOLS if isinstance(self, it)], "looping": self._looping,
                "beats": self._beats, "one": helper is __import__("sandbox.extensions.many.helper", fromlist=["helper"]),
            }  # fmt: skip

        async def many_emit(text: str) -> None:
            """Publishes."""
            await self._ctx.emit("many.alert", {"text": text}, correlation_id="c1")

        async def many_ask(prompt: str) -> dict:
            """Asks the main agent."""
            chunks = []
            streamed = await self._ctx.invoke_agent_streamed(prompt, on_chunk=chunks.append)
            return {"answer": await self._ctx.invoke_agent(prompt), "streamed": streamed, "chunks": chunks}

        async def many_enriched(prompt: str) -> str:
            """What context providers add."""
            return await self._ctx.enrich_prompt(prompt)

        extra = [named(name) for name in self._ctx.config["extra_tools"]]
        plain = [many_fail, many_facts, many_emit, many_ask, many_enriched]
        return [greet, many_point, many_sorry, *plain, *extra]

    async def send_to_user(self, user_id: str, message: str) -> None:
        self._note(f"to {user_id}: {message}")

    async def send_message(self, message: str) -> None:
        self._note(f"out: {message}")

    async def on_stream_start(self, user_id: str) -> None:
        self._note(f"stream {user_id}: start")

    async def on_stream_chunk(self, user_id: str, chunk: str) -> None:
        self._note(f"stream {user_id}: chunk {json.dumps(chunk)}")

    async def on_stream_status(self, user_id: str, status: str) -> None:
        self._note(f"stream {user_id}: status {status}")

    async def on_stream_end(self, user_id: str, full_text: str) -> None:
        if full_text.startswith("Refuse"):
            raise RuntimeError("the message is gone")
        self._note(f"stream {user_id}: end {json.dumps(full_text)}")

    def get_agent_descriptor(self) -> AgentDescriptor:
        return AgentDescriptor(name="many_helper", description="Helps.", integration_mode="tool")

    async def invoke(self, task: str, context: AgentInvocationContext | None = None) -> AgentResponse:
        if task == "fail":
            return AgentResponse(status="error", error="it does not work")
        return AgentResponse(content=f"done: {task} for {context.channel_id if context else 'nobody'}")

    async def execute_task(self, task_name: str) -> dict[str, Any] | None:
        match task_name:
            case "beat":
                self._beats += 1
                return {"text": "a beat"} if self._beats == 1 else None

    async def run_background(self) -> None:
        self._looping = True
        try:
            while True:
                await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            self._note("the loop was cancelled")
            raise

    @property
    def context_priority(self) -> int:
        return 10

    async def get_context(self, prompt: str, turn_context: TurnContext) -> str | None:
        return f"They said {prompt!r} on {turn_context.channel_id}." if "weather" in prompt else None

    def get_setup_schema(self) -> list[dict]:
        return [
            {"name": "token", "description": "A token.", "secret": True, "required": True},
            {"name": "parse_mode", "description": "How.", "secret": False, "required": False},
        ]

    async def apply_config(self, name: str, value: str) -> None:
        self._note(f"config {name}={value}")

    async def on_setup_complete(self) -> tuple[bool, str]:
        return True, "all is well"

    async def add(self, first: int, second: int = 1) -> int:
        """Adds."""
        return first + second

    async def move(self, point: Point, by: int = 1) -> Point:
        return Point(point.x + by, point.y + by)

    def sync_method(self) -> str:
        return "sync"


def named(name: str) -> Any:
    return {"name": f"many_{name}", "description": f"The tool {name}.", "function": lambda: json.dumps(name)}


PROTOCOLS = [
    AgentProvider, ChannelProvider, ContextProvider, Extension, SchedulerProvider, ServiceProvider, SetupProvider,
    StreamingChannelProvider, ToolProvider,
]  # fmt: skip
