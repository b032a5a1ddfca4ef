"""The follower as a program that knows nothing but the protocol."""

import json
import sys

SCHEMA = {
    "type": "object",
    "properties": {"agent": {"type": "string"}, "task": {"type": "string"}},
    "required": ["agent", "task"],
}
TOOL = {"name": "follow", "description": "Follows an agent.", "effects": "write", "input_schema": SCHEMA}


def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def ask(call, told, **question):
    say(id="q", method="ask", params={"call": call, **question})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "update":
            update = message["params"]
            told.append(update.get("text") or update["tool"] + json.dumps(update["arguments"], separators=(",", ":")))
        elif message.get("id") == "q":
            if "error" in message:
                raise RuntimeError(message["error"]["message"])
            return message["result"]


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    number, method = request["id"], request["method"]
    if method != "tool":
        say(id=number, result={"protocol": "0.1", "tools": [TOOL]} if method == "hello" else None)
        continue
    try:
        told, arguments = [], request["params"]["arguments"]
        answer = ask(number, told, name="agent.invoke", arguments=arguments, updates=True)
        ask(number, [], name="clock", arguments=None)
        say(id=number, result=f"{' '.join(told)} = {answer}")
    except RuntimeError as error:
        say(id=number, error={"code": -32000, "message": str(error)})
