"""Hooks of a class have no side effects: what they would connect to, write or start is asked of the host, which refuses it."""

import os
import socket
import tempfile
import unittest

from test_wire import Worker

TURN = {"session": "s", "turn": 1, "agent": "main", "channel": "cli", "user": None}
TEXT = """
    import asyncio, os, socket, sqlite3, subprocess, threading, urllib.request

    def connect(port):
        with socket.create_connection(("127.0.0.1", port)):
            return "connected"

    def write(path):
        with open(path, "w") as file:
            file.write("x")
        return "written"

    def threaded(port):
        said = []
        def run():
            try:
                said.append(connect(port))
            except PermissionError:
                said.append("refused")
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return said[0]

    DEEDS = {
        "connect": connect, "write": write, "threaded": threaded, "remove": os.remove, "mkdir": os.mkdir,
        "rename": lambda path: os.rename(path, path + "2"), "start": lambda program: subprocess.run([program]),
        "fetch": lambda url: urllib.request.urlopen(url), "read": lambda path: open(path).read(),
        "database": lambda path: sqlite3.connect(path).close(),
    }

    class It:
        async def initialize(self, context):
            pass

        async def tool_gate(self, event):
            deed, about = event.subject["deed"], event.subject["about"]
            try:
                said = await asyncio.get_running_loop().run_in_executor(None, DEEDS[deed], about) if event.subject.get("pool") else DEEDS[deed](about)
            except PermissionError as error:
                return {"decision": "deny", "reason": f"refused: {error}"}
            return {"decision": "deny", "reason": str(said)}

        def deed(self, deed, about):
            return DEEDS[deed](about)
"""


class Hooks(unittest.TestCase):
    def setUp(self):
        self.outside = tempfile.TemporaryDirectory()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.worker = Worker("class", "it:It", TEXT)
        self.worker.hello()
        self.worker.say(id=2, method="initialize")
        self.worker.until(lambda message: message.get("id") == 2)
        self.worker.say(id=3, method="function", params={"role": "service", "function": "run-background"})
        self.last = 10

    def tearDown(self):
        self.worker.__exit__()
        self.server.close()
        self.outside.cleanup()

    def asked(self, deed, about, **more):
        """Asks the hook; returns what it asked of the host, which refuses it, and what it said in the end."""
        self.last += 1
        number, made = self.last, []
        call = {"id": {}, "tool": "it", "arguments": {}}
        subject = {"deed": deed, "about": about, **more}
        params = {"hook": "it.tool_gate", "point": "tool_gate", "call": call, "subject": subject, "turn": TURN}
        self.worker.say(id=number, method="hook", params=params)
        while True:
            message = self.worker.next()
            if message.get("method") == "ask":
                self.assertEqual(message["params"].pop("call"), number)
                made.append(message["params"])
                self.worker.say(id=message["id"], error={"code": 1, "message": "a hook may not", "data": {"code": "HF-3206"}})
            elif message.get("id") == number:
                return made, message["result"]["reason"]

    def test_side_effects_are_asked_of_the_host_and_refused(self):
        path = os.path.join(self.outside.name, "there")
        open(path, "w").close()
        connection = {"name": "network.connect", "arguments": {"host": "127.0.0.1", "port": self.port}}
        cases = [
            ("connect", self.port, connection),
            ("fetch", "https://api.example.com/x?y", {"name": "network.connect", "arguments": {"host": "api.example.com", "port": 443}}),
            ("write", path, {"name": "file.write", "arguments": {"path": path}}),
            ("remove", path, {"name": "file.remove", "arguments": {"path": path}}),
            ("rename", path, {"name": "file.remove", "arguments": {"path": path}}),
            ("mkdir", path + "s", {"name": "file.make_folder", "arguments": {"path": path + "s"}}),
            ("start", "/bin/true", {"name": "program.start", "arguments": {"operation": "subprocess.Popen", "program": "/bin/true"}}),
        ]
        for deed, about, call in cases:
            for more in {}, {"pool": True}:
                made, said = self.asked(deed, about, **more)
                self.assertEqual((made, said), ([call], "refused: [Errno 1] a hook may not"), deed)
        self.assertEqual(os.listdir(self.outside.name), ["there"])
        made, said = self.asked("threaded", self.port)
        self.assertEqual((made, said), ([connection], "refused"))

    def test_reads_and_its_own_folder_are_left_alone(self):
        there, own = os.path.join(self.outside.name, "there"), self.worker.folder.name
        with open(there, "w") as file:
            file.write("text")
        self.assertEqual(self.asked("read", there), ([], "text"))
        self.assertEqual(self.asked("write", os.path.join(own, "note")), ([], "written"))
        self.assertEqual(self.asked("database", os.path.join(self.outside.name, "db")), ([], "None"))

    def test_another_call_announces_its_connection_while_a_hook_is_open(self):
        self.worker.say(id=5, method="hook", params={"hook": "h", "point": "tool_gate", "call": None, "turn": TURN,
            "subject": {"deed": "fetch", "about": "http://example.com"}})  # fmt: skip
        held = self.worker.until(lambda message: message.get("method") == "ask")
        self.worker.say(id=6, method="api", params={"method": "deed", "arguments": ["connect", self.port]})
        announced = self.worker.until(lambda message: message.get("method") == "connecting")
        self.assertEqual(announced["params"], {"call": 6})
        self.worker.say(id=announced["id"], result=None)
        self.assertEqual(self.worker.until(lambda message: message.get("id") == 6)["result"], "connected")
        self.worker.say(id=held["id"], error={"code": 1, "message": "no"})
        self.worker.until(lambda message: message.get("id") == 5)
        # Without a hook nothing is announced.
        self.worker.say(id=7, method="api", params={"method": "deed", "arguments": ["connect", self.port]})
        self.assertEqual(self.worker.next()["id"], 7)


if __name__ == "__main__":
    unittest.main()
