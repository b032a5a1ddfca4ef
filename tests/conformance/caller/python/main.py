"""The caller as a component in Python."""

from holdfast import (
    Failure, agents, allow, channels, conversations, discovery, environment, events, files, maintenance, prompts, results,
    secrets, system, timers, tool, tool_gate,
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

MORE = [
    lambda: events.publish("news.weather", {"n": 1}, "k"),
    lambda: channels.notify("hello", "office", "ada"),
    lambda: channels.list(),
    lambda: agents.task("rest", "idle", correlation="c"),
    lambda: agents.background("rest", "idle", correlation="c"),
    lambda: prompts.enrich("hello", "idle"),
    lambda: timers.next_due("every 1h", "Europe/Berlin"),
    lambda: files.make_folder("made"),
    lambda: files.write("made/new.txt", "text"),
    lambda: files.stat("made/new.txt"),
    lambda: files.list("made"),
    lambda: files.remove("made/new.txt"),
    lambda: environment.get("LANG"),
    lambda: system.restart("why not"),
]


def make_all(calls):
    """What each call answers does not matter here."""
    for call in calls:
        try:
            call()
        except Failure:
            pass


@tool(effects="write")
def call_all() -> str:
    """Makes every call."""
    make_all(CALLS)
    return "made"


@tool(effects="write")
def call_more() -> str:
    """Makes the calls that other tests compare with a class."""
    make_all(MORE)
    return "made"


@tool_gate
def gate(call):
    if call.tool == "probe":
        make_all(CALLS)
    return allow()
