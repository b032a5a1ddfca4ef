"""Listening: the host is told of every port before it is bound, and an error has the command that grants it."""

import unittest

from test_wire import Worker

CODE = """
import socket, threading

class It:
    async def start(self):
        self.thread = threading.Thread(target=self.bind)
        self.thread.start()
        self.thread.join()
    def bind(self):
        with socket.socket() as it:
            it.bind(("127.0.0.1", 0))
            self.port = it.getsockname()[1]
        with socket.socket() as it:
            it.bind(("127.0.0.1", self.port))
    def bound(self):
        return self.port
"""


class Listening(unittest.TestCase):
    def test_the_host_is_told_of_a_port(self):
        with Worker("class", "main:It", CODE) as worker:
            worker.say(id=1, method="hello", params={"protocol": "0.1", "id": "web", "config": {}, "data_dir": "."})
            worker.until(lambda message: message.get("id") == 1 and "result" in message)
            worker.say(id=2, method="start")
            question = worker.until(lambda message: message.get("method") == "ask")
            self.assertEqual(question["params"]["name"], "network.listen")
            self.assertEqual(question["params"]["call"], 2)
            port = question["params"]["arguments"]["port"]
            # It is not waited for: the kernel decides.
            worker.until(lambda message: message.get("id") == 2 and "result" in message)
            why = "`holdfast ext grant web --listen 1` grants it"
            worker.say(id=question["id"], error={"code": 1, "message": why})
            worker.say(id=3, method="api", params={"method": "bound", "arguments": []})
            answer = worker.until(lambda message: message.get("id") == 3)
            self.assertEqual(answer["result"], port)
            self.assertIn({"level": "warning", "text": why}, worker.logged)


if __name__ == "__main__":
    unittest.main()
