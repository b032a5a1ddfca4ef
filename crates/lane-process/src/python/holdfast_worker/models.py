"""The models of agents, and the agents themselves, as an extension asks them."""

import sys
import typing

from .contract import AgentDescriptor, AgentResponse
from .wire import Failure


def given(**arguments):
    return {name: it for name, it in arguments.items() if it is not None}


@typing.runtime_checkable
class EmbeddingCapability(typing.Protocol):
    """Vectors for texts: one for each, or `None`."""

    async def embed_batch(self, texts: list, model: str) -> list: ...


class Model(str):
    """The name of the model that an agent uses. It can be asked, within the budget of the turn."""

    def __new__(cls, name, wire, agent):
        self = super().__new__(cls, name)
        self._wire, self._agent = wire, agent
        return self

    async def invoke(self, prompt, instructions=""):
        question = given(prompt=prompt, instructions=instructions, agent=self._agent)
        return await self._wire.ask_later("model.invoke", question)


class ModelRouter:
    """The models that agents use, as the settings and the manifests say."""

    def __init__(self, wire, declared=None, warn=None):
        self._wire, self._declared, self._warn = wire, declared or {}, warn

    def get_model(self, agent_id=None):
        """The model of an agent: its own, or that of an agent which the manifest names under `agent_config`."""
        named = self._declared.get(agent_id)
        if isinstance(named, dict):
            # Such an agent exists in the extension's code alone, and the host answers with the extension's own model.
            described = self._wire.ask("agent.describe", {})
            return model_for(str(named.get("model") or described["models"][0]), self._wire, None)
        described = self._wire.ask("agent.describe", given(agent=agent_id))
        return model_for(described["models"][0], self._wire, agent_id)

    def get_capability(self, capability, provider_id=None):
        """What a provider can do besides answering. `None`: the host has nothing of the kind."""
        if self._warn is not None:
            self._warn("there is no %s here", getattr(capability, "__name__", capability))
        return None

    async def invoke(self, prompt, agent_id=None, instructions=""):
        """The text of the model that an agent uses: this extension's own agent, if none is named."""
        question = given(prompt=prompt, instructions=instructions, agent=agent_id)
        return await self._wire.ask_later("model.invoke", question)


def model_for(name, wire, agent):
    """A model; where the package `agents` is in use, one that its agents can run on."""
    if "agents.models.interface" in sys.modules:
        from .sdk_model import sdk_model

        return sdk_model()(name, wire, agent)
    return Model(name, wire, agent)


class AgentRecord:
    """An agent that can be asked."""

    def __init__(self, sheet):
        self.id, self.name = sheet["id"], sheet.get("name") or sheet["id"]
        self.description, self.tools = sheet.get("description") or "", sheet.get("tools") or []
        self.model = next(iter(sheet.get("models") or []), None)
        self.integration_mode, self.limits, self.source, self.expires_at = "tool", None, "static", None

    def __repr__(self):
        return f"<agent {self.id}>"


class RemoteAgent:
    """An agent, which answers through the host."""

    def __init__(self, wire, record):
        self._wire, self._record = wire, record

    def get_agent_descriptor(self):
        return AgentDescriptor(name=self._record.name, description=self._record.description, integration_mode="tool")

    async def invoke(self, task, context=None):
        summary = getattr(context, "conversation_summary", None)
        if summary:
            task = f"{task}\n\nWhat was done before:\n{summary}"
        try:
            answer = await self._wire.ask_later("agent.invoke", {"task": task, "agent": self._record.id})
        except Failure as failure:
            return AgentResponse(status="error", content="", error=str(failure))
        return AgentResponse(status="success", content=answer if isinstance(answer, str) else str(answer))


class AgentRegistry:
    """The agents that can be asked."""

    def __init__(self, wire):
        self._wire = wire

    def list_agents(self, available_only=False):
        return [AgentRecord(it) for it in self._wire.ask("agent.list", {})]

    def get(self, agent_id):
        """An agent and what invokes it, or `None`."""
        record = next((it for it in self.list_agents() if it.id == agent_id), None)
        return None if record is None else (record, RemoteAgent(self._wire, record))

    async def invoke(self, agent_id, task, context=None):
        found = self.get(agent_id)
        if found is None:
            return AgentResponse(status="error", content="", error=f"there is no agent `{agent_id}`")
        return await found[1].invoke(task, context)

    def is_busy(self, agent_id):
        """Never: the host lets calls of an agent wait."""
        return False
