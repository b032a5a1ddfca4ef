"""The conformance extension as a class: every role and every hook point, each doing what its directive says."""

from directives import OBEYS, POINTS, TOOLS, Failure, Obedient, shown
from holdfast_worker import wire


class Conformance:
    def __init__(self):
        self.obedient = Obedient(None, None, {})
        for point in POINTS:
            if point != "context":
                setattr(self, point, self._decide)

    def initialize(self, context):
        self.context = context
        self.obedient = Obedient(context.ask_and_wait, context.logger.info, context.config)
        self._do("initialize")

    def start(self):
        self._do("start")

    def stop(self):
        self._do("stop")

    def destroy(self):
        self._do("destroy")

    def health_check(self):
        return self._do("health")[0] != "unwell"

    def _do(self, where):
        return in_its_words(self.obedient.directive, where)

    def _decide(self, request):
        return in_its_words(self.obedient.decide, request)

    def get_context(self, prompt, turn):
        told = {"session": turn.session_id, "turn": self.context.turn.turn, "agent": turn.agent_id}
        told.update(channel=turn.channel_id, user=turn.user_id)
        decision = self._decide({"point": "context", "subject": prompt, "turn": told})
        return decision and decision["content"]

    def get_tools(self):
        return [{**tool, "input_schema": tool.get("input_schema", {"type": "object"}), "function": self._tool} for tool in TOOLS]

    def _tool(self, **arguments):
        return in_its_words(self.obedient.told, "tool", arguments, arguments, self.context.turn)

    def get_agent_descriptor(self):
        return Descriptor()

    def invoke(self, task):
        return in_its_words(self.obedient.told, "agent", task, None, self.context.turn)

    def get_commands(self):
        return [{"name": "obey", "description": OBEYS}]

    def run_command(self, name, arguments):
        return in_its_words(self.obedient.told, "command", arguments)

    def render_call(self, tool, arguments):
        return shown(tool, arguments)

    def render_result(self, tool, result):
        return shown(tool, result)

    def obey(self, **arguments):
        """Does what it is told."""
        return in_its_words(self.obedient.told, "api", arguments, arguments)


class Descriptor:
    name, description = "helper", "Helps in words."


def in_its_words(function, *arguments):
    """What it says of its own failure is said in these words, without where in the code that was."""
    try:
        return function(*arguments)
    except Failure as failure:
        raise wire.Failure(str(failure), failure.code) from failure
