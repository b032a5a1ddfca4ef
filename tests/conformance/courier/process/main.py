"""The courier as a program that knows nothing but the protocol."""

import json
import sys

from deed import TOOL, deliver, gate

WELCOME = {"protocol": "0.1", "tools": [TOOL], "hooks": ["tool_gate"]}


def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def asking(call):
    def ask(name, arguments):
        say(id="q", method="ask", params={"call": call, "name": name, "arguments": arguments})
        for line in sys.stdin:
            message = json.loads(line)
            if message.get("id") == "q":
                if "error" in message:
                    raise RuntimeError(message["error"]["message"])
                return message["result"]

    return ask


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    if request["method"] == "hello":
        say(id=request["id"], result=WELCOME)
        continue
    if request["method"] == "hook":
        say(id=request["id"], result=gate(request["params"]))
        continue
    if request["method"] != "tool":
        say(id=request["id"], result=None)
        continue
    try:
        say(id=request["id"], result=deliver(asking(request["id"]), **request["params"]["arguments"]))
    except RuntimeError as error:
        say(id=request["id"], error={"code": -32000, "message": str(error)})
