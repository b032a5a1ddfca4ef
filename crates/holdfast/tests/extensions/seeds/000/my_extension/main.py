# sandbox/extensions/my_extension/main.py
from typing import Any

from agents import function_tool

class MyExtension:
    def __init__(self) -> None:
        self._ctx: Any = None

    async def initialize(self, context: Any) -> None:
        self._ctx = context
        self._ctx.subscribe_event("alert.urgent", self._on_alert)

    async def _on_alert(self, event) -> None:
        text = event.payload.get("text", "")
        await self._ctx.notify_user(text)

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def destroy(self) -> None:
        pass

    def health_check(self) -> bool:
        return True

    def get_tools(self) -> list[Any]:
        @function_tool(name_override="my_tool")
        async def my_tool(arg: str) -> str:
            """Tool description for the LLM."""
            kv = self._ctx.get_extension("kv")
            if kv:
                value = await kv.get("key")
            await self._ctx.emit("my_extension.done", {"result": "ok"})
            return f"Result: {arg}"
        return [my_tool]
