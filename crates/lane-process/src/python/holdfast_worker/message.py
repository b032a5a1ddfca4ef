"""What passes between a channel and the agent."""

import dataclasses
import typing


@dataclasses.dataclass
class Message:
    """What passes between a channel and the agent."""

    text: str
    sender: str
    channel: str
    metadata: typing.Optional[dict] = None


@dataclasses.dataclass
class File:
    """A file that a tool has made, on its way out through a channel."""

    name: str
    media_type: str
    content: bytes


def sent_file(file):
    """The file that a channel is to send, from the host's words."""
    if file.get("base64") is None:
        return File(file["name"], file["media_type"], file.get("text", "").encode())
    import base64

    return File(file["name"], file["media_type"], base64.b64decode(file["base64"]))
