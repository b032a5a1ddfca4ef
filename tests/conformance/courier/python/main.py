"""The courier as a component in Python."""

from holdfast import allow, deny, files, http, secrets, subscriptions, tool, tool_gate


@tool(effects="network")
def deliver(url: str, folder: str) -> str:
    """Fetches, reads, writes and subscribes.

    Args:
        url: What is fetched.
        folder: The folder that is read.
    """
    token = secrets.reference("TOKEN")
    response = http.send(url, headers={"authorization": f"Bearer {token}"})
    note = files.read_text(f"{folder}/note.txt")
    files.write("copy.txt", note)
    names = [entry.name for entry in files.list(folder)]
    subscriptions.subscribe("news.weather")
    return f"{response.status} {response.body.decode()} | {note} | {' '.join(names)}"


@tool_gate
def gate(call):
    is_web = str(call.arguments.get("url")).startswith("http")
    if call.tool == "deliver" and not is_web:
        return deny("it delivers from the web only")
    return allow()
