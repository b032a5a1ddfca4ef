"""The courier as a class."""

from deed import TOOL, deliver, gate


class Courier:
    def initialize(self, context):
        self.context = context

    def get_tools(self):
        return [{**TOOL, "function": self._deliver}]

    def _deliver(self, url, folder):
        return deliver(self.context.ask_and_wait, url, folder)

    def tool_gate(self, request):
        return gate(request)
