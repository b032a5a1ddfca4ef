"""The manifest of an extension as an object."""

import dataclasses
import pathlib

from holdfast_worker.contract import Open

def record(kind, /, **fields):
    """A dataclass whose fields have these defaults; a list or a mapping is a new one for each object."""
    made = {it: dataclasses.field(default_factory=default) if default in (list, dict) else default for it, default in fields.items()}
    kinds = {it: object for it in fields}
    body = {"__annotations__": kinds, "__module__": __name__, **made}
    return dataclasses.dataclass(init=False, repr=False, eq=False)(type(kind, (Open,), body))


AgentLimits = record("AgentLimits", max_turns=10, max_tokens_per_invocation=50000, time_budget_ms=120000)
EventPublishDeclaration = record("EventPublishDeclaration", topic="", description="")
EventSubscribeDeclaration = record("EventSubscribeDeclaration", topic="", handler="custom")
EventsConfig = record("EventsConfig", publishes=list, subscribes=list)
ScheduleEntry = record("ScheduleEntry", name="", cron="", task=None)
AgentManifestConfig = record(
    "AgentManifestConfig", integration_mode="tool", model="", instructions="", parallel_tool_calls=False, parameters=dict,
    uses_tools=list, limits=None,
)  # fmt: skip
Fields = record(
    "Fields", id="", name="", version="1.0.0", entrypoint=None, description="", setup_instructions="", depends_on=list, secrets=list,
    config=dict, enabled=True, agent=None, agent_id=None, agent_config=None, events=None, schedules=list,
)  # fmt: skip


class ExtensionManifest(Fields):
    """What an extension says of itself."""

    @classmethod
    def model_validate(cls, read):
        agent, events = read.get("agent"), read.get("events")
        named = lambda kind, name: [kind(**it) for it in events.get(name) or []]
        return cls(**{
            **read,
            "agent": AgentManifestConfig(**{**agent, "limits": AgentLimits(**agent.get("limits") or {})}) if agent else None,
            "events": EventsConfig(named(EventPublishDeclaration, "publishes"), named(EventSubscribeDeclaration, "subscribes")) if events else None,
            "schedules": [ScheduleEntry(**it) for it in read.get("schedules") or []],
        })  # fmt: skip


def load_manifest(path):
    """The manifest in a file, for which the package `pyyaml` is needed."""
    import yaml

    return ExtensionManifest.model_validate(yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8")))
