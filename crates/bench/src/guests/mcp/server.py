import json
import sys

TOOL = {"name": "echo", "description": "Gives back what it got.", "inputSchema": {"type": "object"}}
ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    method = message["method"]
    if method == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": message["params"]["arguments"]["content"]}]}
    elif method == "initialize":
        answer["result"] = ABOUT
    elif method == "tools/list":
        answer["result"] = {"tools": [TOOL]}
    else:
        answer["error"] = {"code": -32601, "message": "unknown method"}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
