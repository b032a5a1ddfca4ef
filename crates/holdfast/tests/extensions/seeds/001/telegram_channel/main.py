import asyncio
from typing import Any

class TelegramChannelExtension:
    id = "telegram_channel"
    name = "Telegram Bot Channel"
    version = "1.0.0"

    async def initialize(self, context) -> None:
        """Called once on load. Subscriptions, dependency init."""
        self._context = context
        self._inbox = context.data_dir / "in"
        self._inbox.mkdir(exist_ok=True)

    async def start(self) -> None:
        """Start active work: polling loops, servers, background tasks."""
        self._polling = asyncio.create_task(self._polling_loop())

    async def stop(self) -> None:
        """Graceful shutdown. Cancel tasks, close connections."""
        self._polling.cancel()

    async def destroy(self) -> None:
        """Release resources. Called after stop()."""

    def health_check(self) -> bool:
        """True = operating normally."""
        return not self._polling.done()

    async def _polling_loop(self) -> None:
        context = self._context
        while True:
            for path in self._inbox.glob("[0-9]*"):
                text = path.read_text()
                path.unlink()
                await context.on_user_message(
                    text=text,
                    user_id="123456",
                    channel=self          # ← passes itself so kernel knows where to reply
                )
            await asyncio.sleep(0.02)

    async def send_to_user(self, user_id: str, message: str) -> None:
        """Send agent response to user through this channel."""
        with open(self._context.data_dir / "notes", "a") as file:
            file.write(f"{self._context.get_config('parse_mode')} {user_id}: {message}\n")

    def get_setup_schema(self) -> list[dict]:
        """[{name, description, secret, required}] — list of setup parameters."""
        return [{"name": "token", "description": "The bot's token.", "secret": True, "required": True}]

    async def apply_config(self, name: str, value: str) -> None:
        """Save config value. Extension decides where to store it."""
        (self._context.data_dir / name).write_text(value)

    async def on_setup_complete(self) -> tuple[bool, str]:
        """Verify everything is set up. Return (success, message)."""
        token = await self._context.get_secret("token")
        return (True, f"a token of {len(token)} letters") if token else (False, "there is no token")
