"""The follower as a class."""

import json


class Follower:
    def initialize(self, context):
        self.context = context

    def get_tools(self):
        parameters = {"agent": {"type": "string"}, "task": {"type": "string"}}
        schema = {"type": "object", "properties": parameters, "required": ["agent", "task"]}
        described = {"description": "Follows an agent while it answers.", "effects": "write", "input_schema": schema}
        return [{"name": "follow", **described, "function": self._follow}]

    async def _follow(self, agent, task):
        told = []

        async def updated(update):
            told.append(update.get("text") or update["tool"] + json.dumps(update["arguments"], separators=(",", ":")))

        # `invoke_agent_streamed` does this with the main agent.
        answer = await self.context._wire.ask_streamed("agent.invoke", {"agent": agent, "task": task}, updated)
        await self.context.ask("clock")
        return f"{' '.join(told)} = {answer}"
