"""The courier as a component in Python."""

from holdfast import files, http, secrets, subscriptions, tool


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
