import asyncio
from typing import Any

class RemindersExtension:
    async def initialize(self, context) -> None:
        self._context = context
        self._seen = []
        context.subscribe("user_message", self._on_message)

    async def _on_message(self, event) -> None:
        self._seen.append(event.payload["text"])

    def get_schedule(self) -> str:
        """Cron expression: '*/5 * * * *'"""
        return "*/5 * * * *"

    async def execute(self) -> dict[str, Any] | None:
        """Run the task. Return {'text': '...'} to notify user."""
        return {"text": "Reminder: call mom"}

    async def run_background(self) -> None:
        """Main service loop. Must handle CancelledError."""
        try:
            while True:
                (self._context.data_dir / "alive").touch()
                await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            raise

    async def seen(self) -> list[str]:
        return self._seen

    def get_tools(self) -> list[Any]:
        async def reminders_seen() -> list[str]:
            """What users have said."""
            return self._seen
        return [reminders_seen]
