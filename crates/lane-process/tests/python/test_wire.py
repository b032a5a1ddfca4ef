"""The connection: a slow call does not block others, and every host call is attributed to a call."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

WORKER = os.environ["WORKER"]


class Worker:
    """A worker and its pipes."""

    def __init__(self, kind, target, text, more={}):
        self.folder = tempfile.TemporaryDirectory()
        main = target.split(":")[0] + (".py" if ":" in target else "")
        for name, content in {main: text, **more}.items():
            path = os.path.join(self.folder.name, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(textwrap.dedent(content))
        words = [sys.executable, "-S", "-B", WORKER, kind, target]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(words, cwd=self.folder.name, **pipes)
        self.heard, self.logged = [], []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()
        self.folder.cleanup()

    def say(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def next(self):
        """The next message, except those for the log, which are kept."""
        while True:
            message = json.loads(self.process.stdout.readline())
            if message.get("method") != "log":
                return message
            self.logged.append(message["params"])

    def until(self, fits):
        for message in self.heard:
            if fits(message):
                self.heard.remove(message)
                return message
        while True:
            message = self.next()
            if fits(message):
                return message
            self.heard.append(message)

    def hello(self, **more):
        params = {"protocol": "0.1", "id": "it", "config": {}, "data_dir": self.folder.name, "manifest": {}, **more}
        self.say(id=1, method="hello", params=params)
        return self.until(lambda message: message.get("id") == 1)

    def call(self, number, **arguments):
        turn = {"session": "s", "turn": 1, "agent": "main", "channel": "cli", "user": None}
        self.say(id=number, method="tool", params={"call": {}, "tool": "it", "arguments": arguments, "turn": turn})


class Conversations(unittest.TestCase):
    def test_a_call_that_blocks_stops_nothing(self):
        text = """
            import time
            def run(seconds: float) -> float:
                time.sleep(seconds)
                return seconds
        """
        with Worker("tool", "tools/it.py", text) as worker:
            worker.hello()
            began = time.monotonic()
            for number in range(2, 12):
                worker.call(number, seconds=0.5)
            worker.call(12, seconds=0.0)
            self.assertEqual(worker.next()["id"], 12)
            self.assertLess(time.monotonic() - began, 0.4)
            self.assertEqual({worker.next()["id"] for _ in range(10)}, set(range(2, 12)))
            self.assertLess(time.monotonic() - began, 2)
            for number in range(20, 220):
                worker.call(number, seconds=0.0)
                self.assertEqual(worker.next()["id"], number)

    def test_a_coroutine_is_cancelled(self):
        text = """
            import asyncio
            async def run(seconds: float) -> str:
                try:
                    await asyncio.sleep(seconds)
                except asyncio.CancelledError:
                    open("cancelled", "w").close()
                    raise
                return "done"
        """
        with Worker("tool", "tools/it.py", text) as worker:
            worker.hello()
            worker.call(2, seconds=60)
            worker.call(3, seconds=0)
            self.assertEqual(worker.next()["result"], "done")
            worker.say(method="cancel", params={"id": 2})
            self.assertEqual(worker.next()["error"]["message"], "cancelled")
            self.assertTrue(os.path.exists(os.path.join(worker.folder.name, "cancelled")))

    def test_what_it_starts_as_python3_is_its_own_interpreter(self):
        text = """
            import os
            def run() -> str:
                return os.environ["PATH"].split(os.pathsep)[0]
        """
        with Worker("tool", "tools/it.py", text) as worker:
            worker.hello()
            worker.call(2)
            self.assertEqual(worker.next()["result"], os.path.dirname(sys.executable))

    def test_what_goes_wrong_says_where(self):
        text = """
            import os
            def run(what: str):
                if what == "exit":
                    raise SystemExit(3)
                print("to the log")
                os.system("echo to the log")
                if what == "long":
                    return "x" * (9 << 20)
                if what.startswith("y"):
                    raise ValueError(what)
                if what == "input":
                    import sys
                    return sys.stdin.read() + str(os.system("cat > /dev/null"))
                return {"nan": float("nan"), "text": "\\ud800"} if what == "odd" else {}[what]
        """
        with Worker("tool", "tools/it.py", text) as worker:
            worker.hello()
            worker.call(2, what="no")
            error = worker.next()["error"]
            self.assertEqual(error["message"], "KeyError: 'no' (it.py, line 15)")
            self.assertEqual({it["level"] for it in worker.logged}, {"debug"})
            self.assertEqual(worker.logged[0]["text"], "Traceback (most recent call last):")
            self.assertEqual(worker.logged[-1]["text"], "KeyError: 'no'")
            self.assertEqual(error["data"], {"class": "KeyError", "message": "'no'", "file": "tools/it.py", "line": 15})
            worker.call(3, what="exit")
            self.assertIn("SystemExit: 3", worker.next()["error"]["message"])
            worker.call(4, what="odd")
            self.assertEqual(worker.next()["result"], {"nan": "nan", "text": "?"})
            worker.call(5, what="long")
            self.assertIn("too long", worker.next()["error"]["message"])
            worker.call(7, what="y" * (7 << 20))
            self.assertIn("ValueError: yyy", worker.next()["error"]["message"])
            worker.call(6, what="input")
            self.assertEqual(worker.next()["result"], "0")

    def test_a_file_that_is_called_like_a_module_of_python(self):
        text = """
            import calendar as own, random
            def run() -> int:
                import calendar
                return calendar.monthrange(2026, 2)[1]
        """
        with Worker("tool", "tools/calendar.py", text) as worker:
            self.assertEqual(worker.hello()["result"]["tools"][0]["name"], "calendar")
            worker.call(2)
            self.assertEqual(worker.next()["result"], 28)

    def test_little_is_imported(self):
        text = """
            import sys
            def run() -> list:
                heavy = ("asyncio", "inspect", "typing", "dataclasses", "logging", "ssl", "site", "traceback")
                return [it for it in heavy if it in sys.modules]
        """
        with Worker("tool", "tools/it.py", text) as worker:
            worker.hello()
            worker.call(2)
            self.assertEqual(worker.next()["result"], [])

    def test_files_beside_a_tool(self):
        text = """
            from _helper import said
            from tools import _helper as same
            def run() -> str:
                return said().text + same.__name__
        """
        with Worker("tool", "tools/it.py", text, {"tools/_helper.py": "def said():\n    return Message('a', 'b', 'c')\n"}) as worker:
            worker.hello()
            worker.call(2)
            self.assertEqual(worker.next()["result"], "atools._helper")

    def test_the_only_class_of_a_file(self):
        with Worker("class", "main.py", "class It:\n    def get_tools(self):\n        return [len]\n") as worker:
            self.assertIn("tools", worker.hello()["result"] | {"tools": None})
        with Worker("class", "main.py", "class A: ...\nclass B: ...\n") as worker:
            self.assertIn("There are: A, B", worker.hello()["error"]["message"])
        with Worker("class", "it:Missing", "class It: ...\n") as worker:
            self.assertIn("it.py: there is no class `Missing`", worker.hello()["error"]["message"])

    def test_what_is_asked_outside_of_calls_waits_for_one_that_lasts(self):
        text = """
            import asyncio
            class It:
                async def initialize(self, context):
                    self.context = context
                    asyncio.create_task(self.early())
                async def early(self):
                    await asyncio.sleep(0.05)
                    await self.context.emit("early")
                async def start(self):
                    self.task = asyncio.create_task(self.late())
                async def late(self):
                    await asyncio.sleep(0.2)
                    await self.context.emit("late")
        """
        with Worker("class", "it:It", text) as worker:
            welcome = worker.hello()["result"]
            self.assertEqual((welcome["later"], welcome["functions"]["service"]), (True, ["run-background"]))
            worker.say(id=2, method="initialize")
            worker.until(lambda message: message.get("id") == 2 and "result" in message)
            time.sleep(0.1)
            worker.say(id=3, method="start")
            early = worker.until(lambda message: message.get("method") == "ask")
            self.assertEqual((early["params"]["call"], early["params"]["arguments"]["topic"]), (3, "early"))
            worker.until(lambda message: message.get("id") == 3 and "result" in message)
            worker.say(id=4, method="function", params={"role": "service", "function": "run-background", "arguments": None})
            late = worker.until(lambda message: message.get("method") == "ask")
            self.assertEqual((late["params"]["call"], late["params"]["arguments"]["topic"]), (4, "late"))
            worker.say(method="cancel", params={"id": 4})
            self.assertEqual(worker.until(lambda message: message.get("id") == 4)["error"]["message"], "cancelled")


if __name__ == "__main__":
    unittest.main()
