"""The follower as a component in Python."""

import json

from holdfast import agents, clock, tool


def told(update):
    if "text" in update:
        return update["text"]
    return update["tool"] + json.dumps(update["arguments"], separators=(",", ":"))


@tool(effects="write")
def follow(agent: str, task: str, first: bool = False) -> str:
    """Follows an agent while it answers."""
    with agents.invoke_streamed(task, agent) as invocation:
        if first:
            return told(next(invocation))
        updates = [told(update) for update in invocation]
        answer = invocation.answer()
    clock.now()
    return f"{' '.join(updates)} = {answer}"
