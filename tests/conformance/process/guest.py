"""The conformance extension as a process of its own: every role and every hook point, each doing what its directive says.
`tests/tests/conformance/directive.rs` says what a directive is."""

import json
import sys
import threading

from directives import OBEYS, POINTS, TOOLS, Failure, Obedient, shown

WELCOME = {
    "protocol": "0.1",
    "tools": TOOLS,
    "hooks": POINTS,
    "agent": {"name": "helper", "description": "Helps in words."},
    "commands": [{"name": "obey", "description": OBEYS}],
    "methods": [{"name": "obey", "description": OBEYS}],
    "functions": {
        "lifecycle": ["initialize", "start", "stop", "destroy", "health-check"],
        "agent": ["invoke"],
        "commands": ["run"],
        "renderer": ["render-call", "render-result"],
    },
}


class Wire:
    """One line to a message, both ways."""

    def __init__(self):
        self.lock = threading.Lock()
        self.last = 0
        self.waiting = {}

    def say(self, **message):
        line = json.dumps({"jsonrpc": "2.0", **message})
        with self.lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def ask(self, call, name, arguments=None):
        answered = threading.Event()
        with self.lock:
            self.last += 1
            number = f"q{self.last}"
            entry = self.waiting[number] = [answered, None]
        self.say(id=number, method="ask", params={"call": call, "name": name, "arguments": arguments})
        answered.wait()
        message = entry[1]
        if "error" in message:
            raise Failure("failed", message["error"]["message"])
        return message["result"]

    def run(self, serve):
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                entry = self.waiting.pop(message["id"])
                entry[1] = message
                entry[0].set()
            elif "id" in message:
                threading.Thread(target=self.answer, args=(serve, message), daemon=True).start()

    def answer(self, serve, message):
        try:
            result = serve(message["id"], message["method"], message.get("params"))
            self.say(id=message["id"], result=result)
        except Failure as failure:
            self.say(id=message["id"], error={"code": failure.code, "message": str(failure)})


WIRE = Wire()
CONFIG = {}


def serve(call, method, params):
    if method == "hello":
        CONFIG.update(params["config"])
        return WELCOME
    ask = lambda name, arguments=None: WIRE.ask(call, name, arguments)
    it = Obedient(ask, lambda text: WIRE.say(method="log", params={"text": text}), CONFIG)
    if method == "hook":
        return it.decide(params)
    if method == "tool":
        arguments, turn = params["arguments"], params["turn"]
        return it.told("tool", arguments, arguments, turn)
    if method == "api":
        return it.told("api", params["arguments"], params["arguments"])
    if method == "health":
        return it.directive("health")[0] != "unwell"
    if method in ("initialize", "start", "stop", "destroy"):
        it.directive(method)
        return None
    arguments, function = params["arguments"], params["function"]
    if function == "run":
        return it.told("command", arguments["arguments"])
    if function == "invoke":
        return it.told("agent", arguments["task"], None, arguments.get("turn"))
    return shown(arguments["tool"], arguments["arguments" if function == "render-call" else "result"])


WIRE.run(serve)
