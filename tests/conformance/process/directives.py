"""What the conformance extension is told to do, and how it does that, for all the lanes that run Python.
`tests/tests/conformance/directive.rs` says what a directive is."""

import json

POINTS = [
    "session_start", "turn_start", "input_normalise", "sanitize_input", "guard_input", "context", "model_route",
    "guard_chunk", "tool_modify", "tool_gate", "tool_after", "sanitize_result", "guard_result", "sanitize_output",
    "guard_output", "response_process", "compaction_before", "compaction_provide", "session_cancel", "turn_end",
    "session_end",
]
ALLOWING = ["guard_input", "guard_chunk", "tool_gate", "guard_result", "guard_output"]
OBEYS = "Does what it is told."
TOOLS = [
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
]


class Failure(Exception):
    """What it says of its own failure."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.code = -32602 if kind == "invalid" else 1


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def text_of(value):
    return value if isinstance(value, str) else canonical(value)


def split(text, separator):
    before, _, after = text.partition(separator)
    return before, after


def shown(tool, what):
    return None if tool == "plain" else f"**{tool}** {text_of(what)}"


class Obedient:
    """Does what it is told."""

    def __init__(self, ask, log, config):
        self.ask, self.log, self.config = ask, log, config

    def line_for(self, where, subject, arguments):
        told = arguments.get("do") if isinstance(arguments, dict) else None
        for lines in (subject, told, self.config.get("do")):
            for line in lines.split("\n") if isinstance(lines, str) else []:
                place, rest = split(line, " ")
                if place == where:
                    return rest
        return None

    def question(self, arguments):
        answer = self.ask("ui", arguments)
        return "nothing" if answer is None else answer

    def ask_host(self, verb, rest, turn):
        if verb == "clock":
            return text_of(self.ask("clock"))
        if verb == "random":
            return text_of(self.ask("random", {"bytes": int(rest)}))
        if verb == "remember":
            key, value = split(rest, " ")
            self.ask("state.set", {"key": key, "value": json.loads(value)})
            return ""
        if verb == "forget":
            self.ask("state.set", {"key": rest})
            return ""
        if verb == "recall":
            value = self.ask("state.get", {"key": rest})
            return "nothing" if value is None else canonical(value)
        if verb == "tell":
            self.ask("inject", {"text": rest})
            return ""
        if verb == "host":
            name, arguments = split(rest, " ")
            try:
                self.ask(name, json.loads(arguments))
            except Exception:
                return "refused"
            return "served"
        if verb == "log":
            self.log(rest)
            return ""
        if verb == "config":
            return canonical(self.config[rest]) if rest in self.config else "nothing"
        if verb == "session":
            if turn is None:
                return "outside"
            user = turn["user"] or "nobody"
            return f"{turn['session']}/{turn['turn']}/{turn['agent']}/{turn['channel']}/{user}"
        if verb == "select":
            prompt, options = split(rest, ": ")
            return text_of(self.question({"select": {"prompt": prompt, "options": options.split(", ")}}))
        if verb == "confirm":
            answer = self.question({"confirm": {"prompt": rest}})
            return {True: "yes", False: "no"}.get(answer, "nothing")
        if verb == "input":
            return text_of(self.question({"input": {"prompt": rest}}))
        if verb == "custom":
            kind, rest = split(rest, " ")
            prompt, payload = split(rest, ": ")
            view = {"kind": kind, "payload": json.loads(payload)}
            answer = self.question({"custom": {"prompt": prompt, "view": view}})
            return answer if answer == "nothing" else canonical(answer)
        return None

    def directive(self, where, subject=None, arguments=None, turn=None):
        """A directive's last verb and its text, once the host has been asked for the others."""
        line, heard = self.line_for(where, subject, arguments), ""
        while line is not None:
            stage, rest = split(line, " | ")
            verb, text = split(stage, " ")
            answer = self.ask_host(verb, text, turn)
            if answer is None:
                text = text.replace("%", heard)
                if verb in ("invalid", "refused", "missing", "failed"):
                    raise Failure(verb, text)
                return verb, text
            heard, line = answer, rest or None
        return "", ""

    def told(self, where, given, arguments=None, turn=None):
        verb, text = self.directive(where, given, arguments, turn)
        if verb == "text":
            return text
        return json.loads(text) if verb == "json" else given

    def decide(self, request):
        point, about = request["point"], request.get("call") or {}
        verb, text = self.directive(point, request.get("subject"), about.get("arguments"), request["turn"])
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
