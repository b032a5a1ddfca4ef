"""An agent in code that uses every member of the context that is for agents, shares a service, and watches turns."""

import asyncio

from core.extensions.contract import AgentDescriptor, AgentResponse


ABOUT = ("session_id", "user_id", "channel_id", "agent_id", "metadata", "user_message", "correlation_id")


class Ledger:
    """A service."""

    def __init__(self, name, first):
        self.name, self.lines = name, [first]

    def describe(self):
        return {"name": self.name, "lines": len(self.lines)}

    def add(self, line: str, times: int = 1) -> list:
        self.lines += [line] * times
        return self.lines

    async def close(self):
        self.lines.clear()


class Clerk:
    async def initialize(self, context):
        self.context = context
        context.subscribe("user_message", self.heard)
        context.subscribe("agent_response", self.answered)

    async def start(self):
        pass

    def note(self, text):
        with open(self.context.data_dir / "notes", "a") as file:
            file.write(text + "\n")

    async def heard(self, event):
        said = event.payload
        self.note(f"heard {said['text']} on {said['channel_id']} in {said['session_id']} for {said['agent_id']}")

    def answered(self, event):
        self.note(f"answered {event.payload['text']} in {event.payload['session_id']}")
        raise ValueError("a handler that fails is heard again")

    def get_agent_descriptor(self):
        return AgentDescriptor(name="clerk_agent", description="Keeps the books.", integration_mode="tool")

    async def invoke(self, task, context=None):
        if task == "sleep":
            await asyncio.sleep(600)
        if task.startswith("think "):
            model = self.context.model_router.get_model()
            said = [await model.invoke(f"round {it}", "Count.") for it in range(int(task.split()[1]))]
            return AgentResponse(content=f"{model}: {len(said)}")
        if task == "store":
            await self.tool("kv_set")(key="clerk/from", value="agent")
            return AgentResponse(content=str(await self.tool("kv_get")("clerk/from")))
        about = {name: getattr(context, name) for name in ABOUT}
        return {"task": task, "context": about, "turn": self.context.turn and self.context.turn.agent}

    def tool(self, name):
        return next(it for it in self.context.resolved_tools if it.name == name)

    def get_tools(self):
        async def clerk_facts() -> dict:
            """What it is told of its agent."""
            context, router = self.context, self.context.model_router
            tools = context.resolved_tools
            return {
                "agent": context.agent_id, "model": context.agent_model, "instructions": context.resolved_instructions,
                "own": router.get_model(), "main": router.get_model("main"), "tools": [it.name for it in tools],
                "schema": next(it.params_json_schema for it in tools if it.name == "kv_get")["type"],
            }  # fmt: skip

        async def clerk_stream(prompt: str) -> dict:
            """Asks the main agent and follows its answer."""
            chunks, calls = [], []

            async def called(name, arguments):
                calls.append([name, arguments, len(chunks)])

            answer = await self.context.invoke_agent_streamed(prompt, on_chunk=chunks.append, on_tool_call=called)
            return {"answer": answer, "chunks": chunks, "calls": calls}

        async def clerk_reach(tool: str, arguments: dict) -> str:
            """Calls a tool by its name."""
            try:
                return str(await self.context.ask("tool.invoke", {"tool": tool, "arguments": arguments}))
            except Exception as error:
                return f"{(error.data or {}).get('code')}: {error}"

        return [{"name": it.__name__, "effects": "read", "function": it} for it in (clerk_facts, clerk_stream, clerk_reach)]

    def create_service(self, name, arguments):
        return Ledger(name, arguments["first"]) if name == "ledger" else None
