"""What classes meet: the stand-ins, secrets with and without `await`, tools of several shapes, and the package `agents` in place of its
stand-in."""

import asyncio
import json
import sys
import types
import typing
import unittest

import holdfast_worker.contract
from holdfast_worker import imports
from holdfast_worker.context import ExtensionContext, Proxy, matches, revived
from holdfast_worker.tools import ClassTool
from holdfast_worker.wire import Failure

sys.meta_path.append(imports.Late)

HELLO = {"id": "it", "config": {}, "data_dir": "/nonexistent", "manifest": {"depends_on": ["kv"]}}


class Wire:
    """A host that knows one secret."""

    def ask(self, name, arguments=None, timeout_ms=None):
        if arguments == "THERE":
            return "value"
        raise Failure("there is none", 1, {"code": "HF-1609"})

    async def ask_later(self, name, arguments=None, timeout_ms=None):
        return {"asked": name, "arguments": arguments}

    def say(self, **message): ...


class Contexts(unittest.TestCase):
    def setUp(self):
        self.context = ExtensionContext(Wire(), HELLO)

    def test_secrets_with_and_without_await(self):
        context = self.context

        async def both():
            helper = context.get_secret("THERE")
            return [await context.get_secret("THERE"), context.get_secret("THERE"), await helper], [
                await context.get_secret("NOT"), context.get_secret("NOT"),
            ]  # fmt: skip

        there, missing = asyncio.run(both())
        self.assertEqual(there, ["value"] * 3)
        self.assertEqual([it is None for it in missing], [True, True])

    def test_other_extensions(self):
        self.assertIsNone(self.context.get_extension("stranger"))
        kv = self.context.get_extension("kv")
        self.assertIsInstance(kv, Proxy)
        for given, sent in [(([1], {}), [1]), (([], {"a": 1}), {"a": 1}), (([1], {"a": 2}), {"*": [1], "a": 2}), (([], {}), [])]:
            answer = asyncio.run(kv.method(*given[0], **given[1]))
            self.assertEqual(answer.arguments.arguments, sent)
        self.assertEqual(revived([{"a": {"b": 1}}])[0].a.b, 1)
        self.assertRaises(AttributeError, lambda: revived({}).missing)

    def test_topics(self):
        rows = [("a.b", "a.b", True), ("a.*", "a.b", True), ("a.*", "a.b.c", False), ("a.>", "a.b.c", True), ("a.>", "a", False)]
        for pattern, topic, expected in [*rows, (">", "a", True), ("a", "a.b", False)]:
            with self.subTest(pattern=pattern, topic=topic):
                self.assertEqual(matches(pattern.split("."), topic.split(".")), expected)


class StandIns(unittest.TestCase):
    def test_function_tool(self):
        from agents import RunContextWrapper, function_tool

        @function_tool(name_override="other", description_override="Words.", strict_mode=False)
        def renamed(wrapper: RunContextWrapper[typing.Any], a: int, b: str = "x") -> str:
            """Not these."""
            return f"{a}{b}"

        @function_tool
        async def bare(a: int) -> int:
            """Adds.

            Args:
                a: To what.
            """
            return a + 1

        @function_tool(use_docstring_info=False)
        def silent(a: int):
            """Words.

            Args:
                a: More words.
            """

        self.assertEqual((renamed.name, renamed.description), ("other", "Words."))
        self.assertEqual(list(renamed.params_json_schema["properties"]), ["a", "b"])
        self.assertEqual(renamed.params_json_schema["required"], ["a"])
        self.assertEqual(bare.params_json_schema["properties"]["a"], {"type": "integer", "description": "To what."})
        self.assertEqual((silent.description, silent.params_json_schema["properties"]), ("", {"a": {"type": "integer"}}))
        self.assertEqual(asyncio.run(bare.on_invoke_tool(None, '{"a": 1}')), 2)
        self.assertEqual(ClassTool.of(renamed).call({"arguments": {"a": 1}}), "1x")
        with self.assertRaisesRegex(ImportError, "`Runner`"):
            from agents import Runner

    def test_shapes_of_tools(self):
        class Callable:
            """Words."""

            name = "called"

            def __call__(self, a: int):
                """Its words."""
                return a

        rows = [
            (lambda: 1, "<lambda>", ""),
            ({"name": "named", "description": "D.", "function": lambda a: a}, "named", "D."),
            (Callable(), "called", "Its words."),
        ]
        for shape, name, said in rows:
            self.assertEqual((ClassTool.of(shape).sheet["name"], ClassTool.of(shape).sheet["description"]), (name, said))
        for wrong in (3, {"name": "a"}):
            self.assertRaises(Failure, ClassTool.of, wrong)

    def test_the_package_itself(self):
        """Objects as the package makes them, and contexts as it has had them."""
        package, inner = types.ModuleType("agents"), types.ModuleType("agents.tool_context")

        class ToolContext:
            def __init__(self, context, tool_name, tool_call_id):
                self.tool_name = tool_name

        async def on_invoke_tool(context, text):
            return {"tool": context.tool_name, **json.loads(text)}

        inner.ToolContext = ToolContext
        tool = types.SimpleNamespace(name="real", description="R.", params_json_schema={"type": "object"}, on_invoke_tool=on_invoke_tool)
        before = {name: sys.modules.get(name) for name in ("agents", "agents.tool_context")}
        sys.modules.update({"agents": package, "agents.tool_context": inner})
        try:
            made = ClassTool.of(tool)
            answer = asyncio.run(made.call({"arguments": {"a": 1}, "call": {"turn": 1}}))
        finally:
            for name, module in before.items():
                sys.modules.pop(name)
                if module is not None:
                    sys.modules[name] = module
        self.assertEqual((made.sheet["name"], answer), ("real", {"tool": "real", "a": 1}))

    def test_names_of_the_contract(self):
        from core.extensions import contract
        from core.extensions.context import ExtensionContext as Context
        from pith import Message
        from pith.core import Message as Same

        self.assertIs(Context, ExtensionContext)
        self.assertIs(Message, Same)
        self.assertEqual(Message("a", "b", "c"), Message(text="a", sender="b", channel="c", metadata=None))
        for name in holdfast_worker.contract.__all__:
            self.assertTrue(hasattr(contract, name), name)
        response = contract.AgentResponse(content="a", tokens=3)
        self.assertEqual((response.content, response.status, response.tokens), ("a", "success", 3))
        self.assertRaises(Exception, setattr, contract.TurnContext("a", "b", "c", "d"), "agent_id", "e")


if __name__ == "__main__":
    unittest.main()
