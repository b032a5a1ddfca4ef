from typing import Any

from core.extensions.contract import AgentDescriptor, AgentInvocationContext, AgentResponse, TurnContext

class MemoryExtension:
    async def initialize(self, context: Any) -> None:
        self._ctx = context

    @property
    def context_priority(self) -> int:
        """Lower value = earlier in chain. Default: 100."""
        return 50

    async def get_context(self, prompt: str, turn_context: TurnContext) -> str | None:
        """Return context string to inject, or None to skip."""
        return f"remembered for {turn_context.channel_id}"

    async def execute_task(self, task_name: str) -> dict[str, Any] | None:
        """Execute task by name from manifest schedules[].task (or .name if task empty).
        Return {'text': '...'} to notify user, or None."""
        match task_name:
            case "execute_consolidation":
                return {"text": "consolidated"}
            case "execute_decay":
                return None

    def get_agent_descriptor(self) -> AgentDescriptor:
        """Metadata for LLM routing: name, description, integration_mode."""
        return AgentDescriptor(name="recall", description="Recalls.", integration_mode="tool")

    async def invoke(self, task: str, context: AgentInvocationContext | None = None) -> AgentResponse:
        """Execute task; return structured result."""
        return AgentResponse(content=f"I recall {task}")
