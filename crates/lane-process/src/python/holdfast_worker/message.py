"""Messages and files between a channel and the agent."""

import dataclasses
import typing


@dataclasses.dataclass
class Message:
    """A message between a channel and the agent."""

    text: str
    sender: str
    channel: str
    metadata: typing.Optional[dict] = None


@dataclasses.dataclass
class File:
    """A file that a tool has created, to be sent through a channel."""

    name: str
    media_type: str
    content: bytes


def sent_file(file):
    """The file that a channel must send, from the host's message."""
    if file.get("base64") is None:
        return File(file["name"], file["media_type"], file.get("text", "").encode())
    import base64

    return File(file["name"], file["media_type"], base64.b64decode(file["base64"]))
