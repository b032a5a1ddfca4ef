"""The conformance extension as a process of its own: every role and every hook point, each doing what its directive says.
`tests/tests/conformance/directive.rs` says what a directive is."""

import json
import sys
import threading

POINTS = [
    "session_start", "turn_start", "input_normalise", "sanitize_input", "guard_input", "context", "model_route",
    "guard_chunk", "tool_modify", "tool_gate", "tool_after", "sanitize_result", "guard_result", "sanitize_output",
    "guard_output", "response_process", "compaction_before", "compaction_provide", "session_cancel", "turn_end",
    "session_end",
]
ALLOWING = ["guard_input", "guard_chunk", "tool_gate", "guard_result", "guard_output"]
OBEYS = "Does what it is told."
WELCOME = {
    "protocol": "0.1",
    "tools": [
        {"name": "act", "description": OBEYS, "effects": "pure"},
        {"name": "change", "description": "Says that it changes things.", "effects": "write", "timeout_ms": 2000},
        {
            "name": "typed",
            "description": "Takes a count and promises text.",
            "effects": "pure",
            "input_schema": {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]},
            "output_schema": {"type": "string"},
            "render": {"as": "table"},
        },
    ],
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


class Failure(Exception):
    """What it says of its own failure."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.code = -32602 if kind == "invalid" else 1


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


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def text_of(value):
    return value if isinstance(value, str) else canonical(value)


def split(text, separator):
    before, _, after = text.partition(separator)
    return before, after


def line_for(where, subject, arguments):
    told = arguments.get("do") if isinstance(arguments, dict) else None
    for lines in (subject, told, CONFIG.get("do")):
        for line in lines.split("\n") if isinstance(lines, str) else []:
            place, rest = split(line, " ")
            if place == where:
                return rest
    return None


def question(call, arguments):
    answer = WIRE.ask(call, "ui", arguments)
    return "nothing" if answer is None else answer


def ask_host(call, verb, rest, turn):
    if verb == "clock":
        return text_of(WIRE.ask(call, "clock"))
    if verb == "random":
        return text_of(WIRE.ask(call, "random", {"bytes": int(rest)}))
    if verb == "remember":
        key, value = split(rest, " ")
        WIRE.ask(call, "state.set", {"key": key, "value": json.loads(value)})
        return ""
    if verb == "forget":
        WIRE.ask(call, "state.set", {"key": rest})
        return ""
    if verb == "recall":
        value = WIRE.ask(call, "state.get", {"key": rest})
        return "nothing" if value is None else canonical(value)
    if verb == "tell":
        WIRE.ask(call, "inject", {"text": rest})
        return ""
    if verb == "log":
        WIRE.say(method="log", params={"text": rest})
        return ""
    if verb == "config":
        return canonical(CONFIG[rest]) if rest in CONFIG else "nothing"
    if verb == "session":
        if turn is None:
            return "outside"
        user = turn["user"] or "nobody"
        return f"{turn['session']}/{turn['turn']}/{turn['agent']}/{turn['channel']}/{user}"
    if verb == "select":
        prompt, options = split(rest, ": ")
        return text_of(question(call, {"select": {"prompt": prompt, "options": options.split(", ")}}))
    if verb == "confirm":
        answer = question(call, {"confirm": {"prompt": rest}})
        return {True: "yes", False: "no"}.get(answer, "nothing")
    if verb == "input":
        return text_of(question(call, {"input": {"prompt": rest}}))
    if verb == "custom":
        kind, rest = split(rest, " ")
        prompt, payload = split(rest, ": ")
        view = {"kind": kind, "payload": json.loads(payload)}
        answer = question(call, {"custom": {"prompt": prompt, "view": view}})
        return answer if answer == "nothing" else canonical(answer)
    return None


def directive(call, where, subject=None, arguments=None, turn=None):
    """A directive's last verb and its text, once the host has been asked for the others."""
    line, heard = line_for(where, subject, arguments), ""
    while line is not None:
        stage, rest = split(line, " | ")
        verb, text = split(stage, " ")
        answer = ask_host(call, verb, text, turn)
        if answer is None:
            text = text.replace("%", heard)
            if verb in ("invalid", "refused", "missing", "failed"):
                raise Failure(verb, text)
            return verb, text
        heard, line = answer, rest or None
    return "", ""


def told(call, where, given, arguments=None, turn=None):
    verb, text = directive(call, where, given, arguments, turn)
    if verb == "text":
        return text
    return json.loads(text) if verb == "json" else given


def decide(call, request):
    point, about = request["point"], request.get("call") or {}
    verb, text = directive(call, point, request.get("subject"), about.get("arguments"), request["turn"])
    if verb in ("deny", "ask", "flag", "block"):
        return {"decision": verb, "reason": text}
    if verb in ("inject", "replace"):
        return {"decision": verb, "content": text}
    if verb in ("route", "order"):
        model, reason = split(text, " ")
        return {"decision": "route", "model": model, "authoritative": verb == "order", "reason": reason}
    if verb == "arguments":
        return {"decision": "modify", "arguments": json.loads(text)}
    if verb == "implementation":
        return {"decision": "modify", "implementation": text}
    if verb == "result":
        return {"decision": "enrich", "result": text}
    if verb == "json":
        field = {"decision": "enrich", "result": None} if point == "tool_after" else {"decision": "replace"}
        name = "result" if point == "tool_after" else "content"
        return {**field, name: json.loads(text)}
    if verb == "artifact":
        name, content = split(text, " ")
        artifact = {"name": name, "media_type": "text/plain", "content": content}
        return {"decision": "enrich", "artifacts": [artifact]}
    if verb == "render":
        return {"decision": "enrich", "render": json.loads(text)}
    if verb == "keep":
        keep, text = split(text, " ")
        return {"decision": "compact", "keep": int(keep), "instructions": text or None}
    if verb == "instructions":
        return {"decision": "compact", "instructions": text}
    return {"decision": "allow"} if point in ALLOWING else None


def shown(tool, what):
    return None if tool == "plain" else f"**{tool}** {text_of(what)}"


def serve(call, method, params):
    if method == "hello":
        CONFIG.update(params["config"])
        return WELCOME
    if method == "hook":
        return decide(call, params)
    if method == "tool":
        arguments, turn = params["arguments"], params["turn"]
        if params["tool"] == "helper":
            return told(call, "agent", arguments["task"], None, turn)
        return told(call, "tool", arguments, arguments, turn)
    if method == "api":
        return told(call, "api", params["arguments"], params["arguments"])
    if method == "health":
        return directive(call, "health")[0] != "unwell"
    if method in ("initialize", "start", "stop", "destroy"):
        directive(call, method)
        return None
    arguments, function = params["arguments"], params["function"]
    if function == "run":
        return told(call, "command", arguments["arguments"])
    if function == "invoke":
        return told(call, "agent", arguments["task"])
    return shown(arguments["tool"], arguments["arguments" if function == "render-call" else "result"])


WIRE.run(serve)
