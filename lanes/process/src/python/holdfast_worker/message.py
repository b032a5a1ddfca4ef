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
