"""What the courier does, by host calls: for the class and for the plain program."""

SCHEMA = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "description": "What is fetched."},
        "folder": {"type": "string", "description": "The folder that is read."},
    },
    "required": ["url", "folder"],
    "additionalProperties": False,
}
TOOL = {
    "name": "deliver",
    "description": "Fetches, reads, writes and subscribes.",
    "effects": "network",
    "input_schema": SCHEMA,
}


def deliver(ask, url, folder):
    token = ask("secret.reference", "TOKEN")
    headers = [["authorization", f"Bearer {token}"]]
    response = ask("http.request", {"method": "GET", "url": url, "headers": headers})
    note = ask("file.read", {"path": f"{folder}/note.txt"})
    ask("file.write", {"path": "copy.txt", "content": note})
    names = [entry["name"] for entry in ask("file.list", {"path": folder})]
    ask("event.subscribe", {"topic": "news.weather"})
    return f"{response['status']} {response['body']} | {note} | {' '.join(names)}"


def gate(request):
    call = request["call"]
    is_web = str(call["arguments"].get("url")).startswith("http")
    if call["tool"] == "deliver" and not is_web:
        return {"decision": "deny", "reason": "it delivers from the web only"}
    return {"decision": "allow"}
