"""Each member of the context: which host call it makes, with which arguments, and what it returns. No member is without a line here and
one in `docs/python-classes.md`."""

import asyncio
import inspect
import pathlib
import re
import tempfile
import types
import typing
import unittest

from holdfast_worker.context import TURN, ExtensionContext
from holdfast_worker.contract import TurnContext
from test_ported import THREAD, Wire

MANUAL = pathlib.Path(__file__).parents[4] / "docs" / "python-classes.md"
PROJECT = {"id": "p", "name": "Tea", "created_at": 1, "updated_at": 2}
SHEET = {"id": "writer", "name": "write", "description": "Writes.", "models": ["m"], "tools": None}
TOOL = {"extension": "kv", "name": "kv_get", "description": "", "effects": "read", "input_schema": {"properties": {"key": {}}}}
DESCRIBED = {"models": ["own"], "instructions": "Be brief.", "tools": [TOOL]}
HELLO = {"id": "it", "config": {"colour": "red"}, "manifest": {"depends_on": ["kv"], "agent_id": "agent-7"}}
EVENT = {"text": "hi", "user_id": "7", "channel_id": "it"}


def handler(event): ...


def subscribed(it):
    it.subscribe("a", handler)
    return len(it._handlers)


def unsubscribed(it, name):
    it.subscribe("a", handler)
    getattr(it, name)("a", handler)
    return len(it._handlers)


# A member; what is done with it; the host call that follows, or `None`; and the result as far as it is compared.
MEMBERS = [
    ("extension_id", lambda it: it.extension_id, None, "it"),
    ("config", lambda it: it.config, None, {"colour": "red"}),
    ("get_config", lambda it: [it.get_config("colour"), it.get_config("none", 7)], None, ["red", 7]),
    ("logger", lambda it: it.logger.name, None, "ext.it"),
    ("data_dir", lambda it: it.data_dir.is_dir(), None, True),
    ("extension_dir", lambda it: it.extension_dir == pathlib.Path.cwd(), None, True),
    ("get_secret", lambda it: it.get_secret("TOKEN"), ("secret.get", "TOKEN"), "canary"),
    ("get_secret", lambda it: it.get_secret("it.box.password"), ("secret.get", "box_password"), "canary"),
    ("set_secret", lambda it: it.set_secret("TOKEN", "v"), ("secret.keep", {"name": "TOKEN", "value": "v"}), None),
    ("get_extension", lambda it: [repr(it.get_extension("kv")), it.get_extension("mail")], None, ["<extension kv>", None]),
    ("get_extension", lambda it: it.get_extension("kv").get("a"), ("api.call", {"extension": "kv", "method": "get", "arguments": ["a"]}), "v"),
    ("get_service", lambda it: it.get_service("pool/db", {"url": "u"}), ("service.get", {"key": "pool/db", "arguments": {"url": "u"}}), ...),
    ("turn", lambda it: it.turn, None, None),
    ("ask", lambda it: it.ask("clock"), ("clock", None), 5),
    ("ask_and_wait", lambda it: it.ask_and_wait("clock"), ("clock", None), 5),
    ("emit", lambda it: it.emit("t", {"a": 1}, 3), ("event.publish", {"topic": "t", "payload": {"a": 1}, "correlation": "3"}), None),
    ("subscribe", subscribed, ("event.subscribe", {"topic": "a"}), 1),
    ("subscribe_event", lambda it: it.subscribe_event("a.>", handler), ("event.subscribe", {"topic": "a.>"}), None),
    ("unsubscribe", lambda it: unsubscribed(it, "unsubscribe"), ("event.unsubscribe", {"topic": "a"}), 0),
    ("unsubscribe_event", lambda it: unsubscribed(it, "unsubscribe_event"), ("event.unsubscribe", {"topic": "a"}), 0),
    ("purge_scheduled_events", lambda it: it.purge_scheduled_events(1, "one_shot"), None, 0),
    ("on_user_message", lambda it: it.on_user_message("hi", 7, it), ("event.publish", {"topic": "user.message", "payload": EVENT}), None),
    ("notify_user", lambda it: it.notify_user("t", "web"), ("user.notify", {"text": "t", "channel": "web"}), None),
    ("request_agent_task", lambda it: it.request_agent_task("p"), ("agent.task", {"task": "p"}), None),
    ("request_agent_background", lambda it: it.request_agent_background("p", "c"), ("agent.background", {"task": "p", "correlation": "c"}), None),
    ("invoke_agent", lambda it: it.invoke_agent("p"), ("agent.invoke", {"task": "p"}), "an answer"),
    ("invoke_agent_background", lambda it: it.invoke_agent_background("p"), ("agent.invoke", {"task": "p"}), "an answer"),
    ("invoke_agent_streamed", lambda it: it.invoke_agent_streamed("p"), ("agent.invoke", {"task": "p"}), "an answer"),
    ("enrich_prompt", lambda it: it.enrich_prompt("p", TurnContext("a")), ("context.enrich", {"prompt": "p", "agent": "a"}), "enriched"),
    ("request_restart", lambda it: it.request_restart(), ("system.restart", {}), None),
    ("request_shutdown", lambda it: it.request_shutdown(), ("system.shutdown", {}), None),
    ("agent_id", lambda it: it.agent_id, None, "agent-7"),
    ("agent_model", lambda it: it.agent_model, ("agent.describe", {}), "own"),
    ("resolved_instructions", lambda it: it.resolved_instructions, ("agent.describe", {}), "Be brief."),
    ("resolved_tools", lambda it: [tool.name for tool in it.resolved_tools], ("agent.describe", {}), ["kv_get"]),
    ("resolved_tools", lambda it: it.resolved_tools[0](key="a"), ("tool.invoke", {"tool": "kv_get", "arguments": {"key": "a"}}), "found"),
    ("model_router", lambda it: str(it.model_router.get_model("writer")), ("agent.describe", {"agent": "writer"}), "own"),
    ("model_router", lambda it: it.model_router.invoke("p", "writer"), ("model.invoke", {"prompt": "p", "agent": "writer", "instructions": ""}), "text"),
    ("default_agent_id", lambda it: it.default_agent_id, None, "main"),
    ("agent_registry", lambda it: [found.id for found in it.agent_registry.list_agents()], ("agent.list", {}), ["writer"]),
    ("list_threads", lambda it: it.list_threads(), ("thread.list", {"archived": False, "project": None, "channel": None}), ...),
    ("get_thread", lambda it: it.get_thread("t1"), ("thread.list", {"thread": "t1", "archived": False}), ...),
    ("create_thread", lambda it: it.create_thread(thread_id="t2", title="Tea"), ("thread.update", {"thread": "t2", "channel": "it", "title": "Tea"}), ...),
    ("update_thread", lambda it: it.update_thread("t1", title=None), ("thread.update", {"thread": "t1", "title": None}), ...),
    ("archive_thread", lambda it: it.archive_thread("t1"), ("thread.update", {"thread": "t1", "archived": True}), True),
    ("get_thread_history", lambda it: it.get_thread_history("t1"), ("thread.history", "t1"), [{"role": "user"}]),
    ("list_projects", lambda it: it.list_projects(), ("project.list", None), ...),
    ("get_project", lambda it: it.get_project("none"), ("project.list", None), None),
    ("create_project", lambda it: it.create_project(name="Tea"), ("project.update", ...), ...),
    ("update_project", lambda it: it.update_project("p", name="Tea"), ("project.update", {"project": "p", "fields": {"name": "Tea"}}), ...),
    ("delete_project", lambda it: it.delete_project("p"), ("project.remove", "p"), True),
]  # fmt: skip
ANSWERS = {
    "secret.get": "canary", "api.call": "v", "clock": 5, "agent.invoke": "an answer", "context.enrich": "enriched", "tool.invoke": "found",
    "agent.describe": DESCRIBED, "model.invoke": "text", "agent.list": [SHEET], "thread.list": [THREAD], "thread.update": THREAD,
    "thread.history": [{"role": "user"}], "project.list": [PROJECT], "project.update": PROJECT, "project.remove": True,
}  # fmt: skip


class Host(Wire):
    """Tells what happens meanwhile, before it answers."""

    updates = ()

    def __init__(self, **answers):
        super().__init__()
        self.answers = answers

    async def ask_streamed(self, name, arguments, updated):
        for update in self.updates:
            await updated(update)
        return self.ask(name, arguments)


def made(**changed):
    host = Host(**{**ANSWERS, **changed})
    return ExtensionContext(host, {**HELLO, "data_dir": tempfile.gettempdir()}), host


class Members(unittest.TestCase):
    def test_each_member(self):
        for name, use, call, result in MEMBERS:
            it, host = made()

            async def used():
                found = use(it)
                return await found if hasattr(found, "__await__") and not isinstance(found, str) else found

            with self.subTest(name):
                found = asyncio.run(used())
                if result is not ...:
                    self.assertEqual(found, result)
                asked = host.asked[-1] if host.asked else None
                self.assertEqual(asked[0] if call and call[1] is ... else asked, call[0] if call and call[1] is ... else call)

    def test_no_member_is_left_out(self):
        it, _ = made()
        members = {name for name, _ in inspect.getmembers(ExtensionContext) if not name.startswith("_")}
        members |= {name for name in vars(it) if not name.startswith("_")}
        self.assertEqual(members, {name for name, *_ in MEMBERS})

    def test_each_member_is_documented(self):
        section = MANUAL.read_text().split("\n## The context\n")[1].split("\n## ")[0]
        said = {name for part in re.findall(r"`([^`]+)`", section) for name in re.findall(r"\w+", part)}
        # Other names for what is there.
        self.assertEqual({name for name, *_ in MEMBERS} - said, {"unsubscribe_event", "ask_and_wait"})

    def test_the_turn_of_a_call(self):
        it, _ = made()
        token = TURN.set({"session": "s", "user": "ada"})
        self.assertEqual((it.turn.session, it.turn.user), ("s", "ada"))
        TURN.reset(token)


class Failures(unittest.TestCase):
    """An agent that does not answer is an answer, as a text."""

    def test_an_error_is_the_answer(self):
        from holdfast_worker.wire import Failure

        it, _ = made(**{"agent.invoke": Failure("no model")})
        with self.assertLogs("ext.it", "ERROR"):
            for method in (it.invoke_agent, it.invoke_agent_background, it.invoke_agent_streamed):
                self.assertEqual(asyncio.run(method("p")), "(Error: no model)")

    def test_an_error_follows_what_was_written(self):
        from holdfast_worker.wire import Failure

        it, host = made(**{"agent.invoke": Failure("cut off")})
        host.updates, heard = ({"text": "Half a"},), []
        with self.assertLogs("ext.it", "ERROR"):
            answer = asyncio.run(it.invoke_agent_streamed("p", on_chunk=heard.append))
        self.assertEqual((answer, heard), ("Half a\n(Error: cut off)", ["Half a", "\n(Error: cut off)"]))

    def test_tool_calls_are_told(self):
        it, host = made()
        host.updates, heard = ({"tool": "sum", "arguments": {"a": 1}},), []

        async def told(name):
            heard.append(name)

        asyncio.run(it.invoke_agent_streamed("p", on_tool_call=told))
        self.assertEqual(heard, ["sum"])


class Configurations(unittest.TestCase):
    """A `ConfigModel` says which configuration a class takes."""

    class Model:
        @classmethod
        def model_validate(cls, config):
            if config.get("port") == "no":
                error = ValueError("1 validation error")
                error.errors = lambda: [{"loc": ("port",), "msg": "it is no number"}]
                raise error

    def hello(self, port):
        from holdfast_worker.classes import ClassExtension

        extension = ClassExtension("main:It", Wire())
        extension.made = lambda name: type("It", (), {"ConfigModel": self.Model})()
        hello = {"id": "it", "config": {"port": port}, "data_dir": "/nonexistent", "manifest": {}}
        return extension, lambda: extension.serve("hello", hello)

    def test_a_configuration_that_fits(self):
        _, hello = self.hello(8080)
        self.assertEqual(hello()["methods"], [])

    def test_one_that_does_not_fit_fails_each_time(self):
        from holdfast_worker.wire import Failure

        extension, hello = self.hello("no")
        for _ in range(2):
            with self.assertRaisesRegex(Failure, "`extensions.it.port`: it is no number"):
                hello()
        self.assertIsNone(extension.instance)


class Models(unittest.TestCase):
    """A model that agents of the package `agents` run on, with a package of the same shape in its place."""

    def setUp(self):
        import sys

        record = lambda name: type(name, (types.SimpleNamespace,), {})
        names = {
            "agents": {},
            "agents.items": {it: record(it) for it in (
                "ModelResponse", "Response", "ResponseFunctionToolCall", "ResponseOutputMessage", "ResponseOutputText",
            )},
            "agents.models": {}, "agents.models.interface": {"Model": type("Model", (), {})}, "agents.usage": {"Usage": record("Usage")},
        }  # fmt: skip
        events = typing.Union[record("ResponseCompletedEvent"), record("ResponseTextDeltaEvent")]
        names["agents.items"]["TResponseStreamEvent"] = typing.Annotated[events, "by `type`"]
        before = {name: sys.modules.get(name) for name in names}
        for name, members in names.items():
            sys.modules[name] = types.ModuleType(name)
            vars(sys.modules[name]).update(members)

        def restore():
            for name, module in before.items():
                sys.modules.pop(name)
                if module is not None:
                    sys.modules[name] = module

        self.addCleanup(restore)
        from holdfast_worker.sdk_model import sdk_model

        sdk_model.cache_clear()
        self.addCleanup(sdk_model.cache_clear)

    TOOLS = [types.SimpleNamespace(name="add", description="Adds.", params_json_schema={"type": "object"}, on_invoke_tool=None)]

    def asked(self, answer, input="sum", tools=TOOLS, **settings):
        it, host = made(**{"model.invoke": answer})
        model = it.model_router.get_model()
        settings = types.SimpleNamespace(**settings)
        output = asyncio.run(model.get_response("Be brief.", input, settings, tools, None, [], None)).output
        return output, host.asked[-1][1]

    def test_an_answer_that_calls_functions(self):
        answer = '```json\n{"calls": [{"name": "add", "arguments": {"a": 1}}, {"name": "add"}]}\n```'
        output, question = self.asked(answer)
        self.assertEqual([(it.type, it.name, it.arguments) for it in output], [("function_call", "add", '{"a": 1}'), ("function_call", "add", "{}")])
        self.assertNotEqual(output[0].call_id, output[1].call_id)
        self.assertTrue(question["instructions"].startswith("Be brief.\n\nYou can call functions."))
        self.assertIn('"name": "add", "description": "Adds."', question["instructions"])
        self.assertEqual(len(self.asked(answer, parallel_tool_calls=False)[0]), 1)
        self.assertIn("Call `add`.", self.asked(answer, tool_choice="add")[1]["instructions"])

    def test_an_answer_that_is_text(self):
        for answer in ("It is 3.", '{"calls": []}', '{"calls": 3}', "[1]", '{"other": 1}', '{"calls": [{"name": 3}]}'):
            output, _ = self.asked(answer)
            self.assertEqual([it.content[0].text for it in output], [answer])
        calls = '{"calls": [{"name": "add"}]}'
        for settings in ({"tools": []}, {"tool_choice": "none"}):
            output, question = self.asked(calls, **settings)
            self.assertEqual((output[0].content[0].text, question["instructions"]), (calls, "Be brief."))

    def test_calls_and_results_are_told(self):
        input = [
            {"role": "user", "content": "sum"},
            {"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "c", "output": "3"},
        ]  # fmt: skip
        _, question = self.asked("It is 3.", input)
        said = 'user: sum\n\nassistant: {"calls": [{"name": "add", "arguments": {"a": 1}}]}\n\nresult of add: 3'
        self.assertEqual(question["prompt"], said)

    def test_tools_of_a_provider_are_refused(self):
        with self.assertRaisesRegex(RuntimeError, "cannot use `web_search`"):
            self.asked("x", tools=[types.SimpleNamespace(name="web_search")])

    def test_a_stream_is_one_piece(self):
        it, _ = made(**{"model.invoke": "whole"})

        async def events():
            stream = it.model_router.get_model().stream_response("", "p", types.SimpleNamespace(), [], None, [], None)
            return [event async for event in stream]

        first, last = asyncio.run(events())
        self.assertEqual((first.delta, last.type, last.response.output[0].content[0].text), ("whole", "response.completed", "whole"))


if __name__ == "__main__":
    unittest.main()
