"""The caller as a component in Python."""

from holdfast import (
    Failure, agents, allow, conversations, discovery, maintenance, prompts, results, secrets, tool, tool_gate,
)

CALLS = [
    lambda: secrets.keep("TOKEN", "hunter2"),
    lambda: agents.list(),
    lambda: agents.invoke_tool("hum", {"n": 1}),
    lambda: agents.invoke_model("a line", "be brief", "poet"),
    lambda: prompts.describe_agent("poet"),
    lambda: conversations.list_threads(channel="chat", archived=True),
    lambda: conversations.update_thread("t1", {"title": "Plans"}),
    lambda: conversations.history("t1"),
    lambda: conversations.list_projects(),
    lambda: conversations.update_project({"name": "Garden"}, "garden"),
    lambda: conversations.remove_project("garden"),
    lambda: results.read((1 << 32) + 1, 0, 10),
    lambda: discovery.find_tools("hum", 3),
    lambda: discovery.list_capabilities(),
    lambda: maintenance.open(),
    lambda: maintenance.show("nobody"),
    lambda: maintenance.apply("nobody", "x", 1),
    lambda: maintenance.doctor("nobody"),
]


def make_all():
    """What each call answers does not matter here."""
    for call in CALLS:
        try:
            call()
        except Failure:
            pass


@tool(effects="write")
def call_all() -> str:
    """Makes every call."""
    make_all()
    return "made"


@tool_gate
def gate(call):
    if call.tool == "probe":
        make_all()
    return allow()
