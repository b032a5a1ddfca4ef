"""What classes that were written for another program import and ask of their context."""

import asyncio
import dataclasses
import os
import sys
import tempfile
import types
import unittest

from holdfast_worker import imports
from holdfast_worker.classes import ClassExtension
from holdfast_worker.context import ExtensionContext, event_of, mapping_of
from holdfast_worker.wire import Failure

if imports.Late not in sys.meta_path:
    sys.meta_path.append(imports.Late)

THREAD = {
    "id": "t1", "channel_id": "web", "title": None, "project_id": None, "is_archived": False, "created_at": 1, "last_active_at": 2,
}  # fmt: skip
HELLO = {
    "id": "it", "config": {}, "data_dir": "/nonexistent",
    "manifest": {"agent_config": {"namer": {"model": "small"}}},
}  # fmt: skip


class Wire:
    """A host that answers from a table, and keeps what it was asked."""

    def __init__(self, **answers):
        self.answers, self.asked = {name.replace("_", "."): it for name, it in answers.items()}, []

    def ask(self, name, arguments=None, timeout_ms=None):
        self.asked.append((name, arguments))
        answer = self.answers.get(name)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask_later(self, name, arguments=None, timeout_ms=None):
        return self.ask(name, arguments)

    def tell(self, name, arguments, failed):
        self.ask(name, arguments)

    def say(self, **message): ...


def context(**answers):
    wire = Wire(**answers)
    return ExtensionContext(wire, HELLO), wire


class Modules(unittest.TestCase):
    def test_modules_that_extensions_import(self):
        from core.events import Event, SystemTopics
        from core.events.models import Event as Same
        from core.events.topics import SystemTopics as Topics
        from core.extensions.contract import TurnContext
        from core.extensions.persistence.models import ProjectInfo, ThreadInfo
        from core.extensions.update_fields import UNSET
        from core.llm.capabilities import EmbeddingCapability

        self.assertIs(Event, Same)
        self.assertEqual((SystemTopics, SystemTopics.USER_NOTIFY), (Topics, "system.user.notify"))
        self.assertIsNotNone(UNSET)
        self.assertEqual(TurnContext(thread_id="a").session_id, "a")
        self.assertEqual(TurnContext("a", "b", "c", "d").thread_id, "d")
        self.assertEqual(ThreadInfo(**THREAD).to_dict(), THREAD)
        self.assertTrue(ProjectInfo)

        class Embedder:
            async def embed_batch(self, texts, model): ...

        self.assertIsInstance(Embedder(), EmbeddingCapability)

    def test_states_and_manifests(self):
        from core.extensions import contract
        from core.extensions.manifest import AgentManifestConfig, ExtensionManifest

        self.assertEqual(contract.ExtensionState("active"), contract.ExtensionState.ACTIVE)
        self.assertTrue(hasattr(contract, "TurnContext"))
        read = {
            "id": "it", "name": "It", "agent": {"model": "m", "limits": {"max_turns": 3}}, "more": 1,
            "events": {"subscribes": [{"topic": "a.b"}]}, "schedules": [{"name": "n", "cron": "* * * * *"}],
        }  # fmt: skip
        manifest = ExtensionManifest.model_validate(read)
        self.assertEqual((manifest.version, manifest.agent.limits.max_turns, manifest.more), ("1.0.0", 3, 1))
        self.assertEqual((manifest.events.subscribes[0].handler, manifest.schedules[0].task), ("custom", None))
        self.assertEqual(AgentManifestConfig().parameters, {})
        self.assertIsNone(ExtensionManifest.model_validate({"id": "it", "name": "It"}).events)

    def test_times_and_sizes(self):
        import time

        from core.utils.formatting import format_bytes, format_event_time, relative_time

        self.assertEqual(relative_time(int(time.time()) - 7300), "2 hours ago")
        self.assertEqual([relative_time(it) for it in (None, 0, -1)], ["", "", ""])
        self.assertEqual(format_event_time(1_700_000_000)["event_time_iso"], "2023-11-14T22:13:20+00:00")
        self.assertEqual(set(format_event_time(None).values()), {""})
        self.assertEqual([format_bytes(it) for it in (0, 12, 1536)], ["0 Bytes", "12 Bytes", "1.5 KiB"])

    def test_instructions(self):
        from core.extensions.instructions import resolve_instructions

        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "words.md"), "w") as file:
                file.write(" From a file. \n")
            self.assertEqual(resolve_instructions("And more.", "words.md", folder), "From a file.\n\nAnd more.")
        self.assertEqual(resolve_instructions("Only this.", "missing.md", "/nonexistent"), "Only this.")


class Contexts(unittest.TestCase):
    def test_secrets_of_its_own(self):
        it, wire = context()
        asyncio.run(it.set_secret("it.box.password", "value"))
        asyncio.run(it.set_secret("TOKEN", ""))
        it.get_secret("it.box.password")
        self.assertEqual([asked for _, asked in wire.asked], [
            {"name": "box_password", "value": "value"}, {"name": "TOKEN", "value": ""}, "box_password",
        ])  # fmt: skip

    def test_agents(self):
        sheet = {"id": "writer", "name": "write", "description": "Writes.", "models": ["m"], "tools": None}
        it, wire = context(agent_list=[sheet], agent_invoke="done")
        record, provider = it.agent_registry.get("writer")
        self.assertEqual((record.id, record.model, it.agent_registry.get("nobody")), ("writer", "m", None))
        answer = asyncio.run(provider.invoke("a task"))
        self.assertEqual((answer.status, answer.content, answer.error), ("success", "done", None))
        self.assertEqual(wire.asked[-1], ("agent.invoke", {"task": "a task", "agent": "writer"}))
        self.assertEqual(asyncio.run(it.invoke_agent_background("quietly")), "done")
        wire.answers["agent.invoke"] = Failure("no model")
        self.assertEqual(asyncio.run(it.agent_registry.invoke("writer", "a")).error, "no model")
        self.assertEqual(asyncio.run(it.agent_registry.invoke("nobody", "a")).status, "error")

    def test_models_of_agents_in_the_code(self):
        it, wire = context(agent_describe={"models": ["own"]})
        self.assertEqual([str(it.model_router.get_model(name)) for name in ("namer", None)], ["small", "own"])
        self.assertIsNone(it.model_router.get_capability(object))

    def test_threads(self):
        it, wire = context(thread_list=[THREAD], thread_update={**THREAD, "title": "New"}, thread_history=None)

        async def all_of_it():
            return [
                await it.get_thread("t1"), await it.update_thread("t1", title="New"), await it.create_thread(thread_id="t2"),
                await it.get_thread_history("t1"),
            ]  # fmt: skip

        found, changed, _, history = asyncio.run(all_of_it())
        self.assertEqual((found.id, found.title, changed.title, history), ("t1", None, "New", []))
        self.assertIn(("thread.update", {"thread": "t1", "title": "New"}), wire.asked)
        self.assertIn(("thread.update", {"thread": "t2", "channel": "it"}), wire.asked)

    def test_prompts_for_a_turn(self):
        from core.extensions.contract import TurnContext

        it, wire = context()
        for call in (it.enrich_prompt("p", TurnContext(agent_id="a")), it.enrich_prompt("p", turn_context=TurnContext("a")), it.enrich_prompt("p", "a")):
            asyncio.run(call)
        self.assertEqual(wire.asked, [("context.enrich", {"prompt": "p", "agent": "a"})] * 3)

    def test_answers_of_agents_in_both_orders(self):
        from core.extensions.contract import AgentResponse

        for answer in (AgentResponse("success", "text"), AgentResponse("text"), AgentResponse(status="success", content="text")):
            self.assertEqual((answer.status, answer.content, answer.tokens_used), ("success", "text", None))


    def test_records_of_agents_are_dataclasses(self):
        from core.extensions.contract import AgentDescriptor, AgentInvocationContext, AgentResponse

        for it in (AgentResponse("success", "text", more=1), AgentDescriptor(name="a"), AgentInvocationContext(user_message="hi")):
            self.assertTrue(dataclasses.is_dataclass(it))
            fields = dataclasses.asdict(it)
            self.assertEqual(fields, {name: value for name, value in vars(it).items() if name != "more"})
            self.assertEqual(dataclasses.asdict(dataclasses.replace(it)), fields)
        changed = dataclasses.replace(AgentResponse("success", "text"), status="error", error="no")
        self.assertEqual((changed.status, changed.content, changed.error), ("error", "text", "no"))
        self.assertIsNot(AgentResponse("a").metadata, AgentResponse("b").metadata)

        @dataclasses.dataclass
        class Mine(AgentDescriptor):
            effort: int = 1

        self.assertEqual((Mine(name="me").effort, Mine(name="me").integration_mode), (1, "tool"))


class Events(unittest.TestCase):
    EVENT = {"id": "1", "topic": "user_message", "payload": {"text": "hi", "thread_id": "t"}, "attempt": 2, "source": "web", "at": 5000}

    def test_fields(self):
        event = event_of(self.EVENT)
        self.assertEqual((event.source, event.created_at, event.retry_count, event.status), ("web", 5.0, 1, "processing"))

    def test_a_subscriber_gets_a_mapping(self):
        heard = mapping_of(event_of(self.EVENT))
        self.assertEqual((heard["text"], heard.get("thread_id"), heard.get("none")), ("hi", "t", None))
        self.assertEqual((heard.topic, heard.payload["text"], heard.retry_count), ("user_message", "hi", 1))

    def test_every_handler_is_called(self):
        calls = []

        class It:
            async def initialize(self, context):
                context.subscribe_event("a.b", self.fails)
                context.subscribe("a.b", calls.append)

            async def fails(self, event):
                raise ValueError("no")

        extension = ClassExtension("main:It", Wire())
        extension.instance, extension.context = It(), ExtensionContext(extension.wire, HELLO)
        asyncio.run(extension.initialize())
        with self.assertRaises(ValueError):
            asyncio.run(extension.subscriber("on-event", {**self.EVENT, "topic": "a.b"}))
        self.assertEqual(calls, [{"text": "hi", "thread_id": "t"}])


    def test_a_subscriber_that_raises_stops_no_other(self):
        calls = []
        extension = ClassExtension("main:It", Wire())
        extension.context = ExtensionContext(extension.wire, HELLO)

        def fails(said):
            calls.append("fails")
            raise ValueError("no")

        extension.context.subscribe("user_message", fails)
        extension.context.subscribe("user_message", calls.append)
        extension.context.subscribe("user_message", self.fail)
        extension.context.unsubscribe("user_message", self.fail)
        with self.assertLogs("ext.it", "ERROR"):
            asyncio.run(extension.subscriber("on-event", self.EVENT))
        self.assertEqual(calls, ["fails", {"text": "hi", "thread_id": "t"}])

    def test_a_context_provider_gets_the_prompt_and_the_turn(self):
        class It:
            async def get_context(self, prompt, turn):
                return f"{prompt} {turn.agent_id} {turn.channel_id} {turn.user_id} {turn.session_id} {turn.thread_id}"

        extension = ClassExtension("main:It", Wire())
        extension.instance = It()
        turn = {"agent": "main", "channel": "web", "user": "u42", "session": "web.u42"}
        asked = {"point": "context", "subject": "hi", "turn": turn}
        self.assertEqual(
            asyncio.run(extension.hook(**asked)), {"decision": "inject", "content": "hi main web u42 web.u42 web.u42"}
        )


class Servers(unittest.TestCase):
    def test_tools_of_servers_that_a_class_connects_to(self):
        class Server:
            name = "clock"

            async def list_tools(self):
                first = types.SimpleNamespace(name="now", description="The time.", inputSchema={"type": "object"})
                return [first, types.SimpleNamespace(name="later", description=None, input_schema={"type": "object"})]

            async def call_tool(self, tool, arguments):
                return types.SimpleNamespace(content=[types.SimpleNamespace(text=f"{tool} {arguments}")], isError=tool == "later")

        class It:
            def get_mcp_servers(self):
                return [Server()]

        extension = ClassExtension("main:It", Wire())
        extension.instance, extension.context = It(), ExtensionContext(extension.wire, HELLO)
        tools = extension.tools()
        self.assertEqual(list(tools), ["it_tools", "it_call"])
        run = lambda which, **arguments: asyncio.run(tools[which].call({"arguments": arguments}))
        self.assertEqual([(it["tool"], it["arguments"]) for it in run("it_tools")], [(it, {"type": "object"}) for it in ("now", "later")])
        self.assertEqual(run("it_call", server="clock", tool="now", arguments={"a": 1}), "now {'a': 1}")
        for server, tool in (("none", "now"), ("clock", "later")):
            self.assertRaises(Failure, run, "it_call", server=server, tool=tool, arguments={})

    def test_a_tool_that_a_servers_filter_hides_is_not_called(self):
        tools, server = self.guarded(lambda tool: False)
        with self.assertRaisesRegex(Failure, "offers no tool `erase`; it offers: read"):
            self.call(tools, "erase")
        self.assertEqual((self.call(tools, "read"), server.called), ("done", ["read"]))

    def test_a_tool_that_needs_an_approval_asks(self):
        async def always(context, arguments, call):
            return True

        for rule in (lambda tool: tool.name == "read", lambda tool: always):
            for answer, asked in ((True, 1), (False, 1), (None, 1), (Failure("nobody is there"), 1)):
                wire = Wire(ui=answer)
                tools, server = self.guarded(rule, wire)
                if answer is True:
                    self.assertEqual(self.call(tools, "read"), "done")
                else:
                    self.assertRaisesRegex(Failure, "needs an approval", self.call, tools, "read")
                self.assertEqual(len(server.called), 1 if answer is True else 0)
                self.assertEqual([name for name, _ in wire.asked], ["ui"] * asked)
                self.assertIn('{"path": "a"}', wire.asked[0][1]["prompt"])

    def test_a_rule_that_cannot_be_read_asks(self):
        tools, server = self.guarded(None, Wire(ui=False))
        for rule, runs in (("never", True), (None, True), ("always", False), ({"read": "always"}, False)):
            server.require_approval, server.called = rule, []
            if not runs:
                self.assertRaises(Failure, self.call, tools, "read")
            else:
                self.call(tools, "read")
            self.assertEqual(bool(server.called), runs)

    def call(self, tools, tool):
        return asyncio.run(tools["it_call"].call({"arguments": {"server": "files", "tool": tool, "arguments": {"path": "a"}}}))

    def guarded(self, rule, wire=None):
        """A server that lets one tool through its filter, and calls any."""

        class Server:
            name, called = "files", []

            async def list_tools(self, run_context=None, agent=None):
                return [types.SimpleNamespace(name="read", description="", inputSchema={"type": "object"})]

            async def call_tool(self, tool, arguments):
                self.called.append(tool)
                return types.SimpleNamespace(content=[types.SimpleNamespace(text="done")], isError=False)

        server = Server()
        server.called = []
        if rule is not None:
            server._get_needs_approval_for_tool = lambda tool, agent: rule(tool)

        class It:
            def get_mcp_servers(self):
                return [server]

        extension = ClassExtension("main:It", wire or Wire())
        extension.instance, extension.context = It(), ExtensionContext(extension.wire, HELLO)
        return extension.tools(), server


class Sqlite(unittest.TestCase):
    def test_another_sqlite_takes_the_place_of_pythons(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "pysqlite3"))
            for name, text in (("__init__", "from .dbapi2 import *"), ("dbapi2", "loadable = True")):
                with open(os.path.join(folder, "pysqlite3", f"{name}.py"), "w") as file:
                    file.write(text)
            names = [it for it in sys.modules if it.split(".")[0] in ("sqlite3", "pysqlite3")]
            before = {name: sys.modules.pop(name) for name in names}
            self.assertIsNone(imports.Sqlite.find_spec("sqlite3"))
            sys.path.append(folder)
            sys.meta_path.insert(0, imports.Sqlite)
            try:
                import sqlite3
                import sqlite3.dbapi2 as inner

                self.assertTrue(sqlite3.loadable and inner.loadable)
            finally:
                sys.meta_path.remove(imports.Sqlite)
                sys.path.remove(folder)
                for name in [it for it in sys.modules if it.split(".")[0] in ("sqlite3", "pysqlite3")]:
                    del sys.modules[name]
                sys.modules.update(before)


if __name__ == "__main__":
    unittest.main()
