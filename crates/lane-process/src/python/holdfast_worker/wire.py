"""The connection to the host: JSON-RPC with one message per line, with requests in both directions.

One thread reads. It serves requests itself, so that a plain function costs no thread switch; if a request takes longer than a few
milliseconds, another thread continues reading. Coroutines run on one event loop, which is started with the first one.
"""

import contextvars
import json
import os
import threading
import time

from .report import described, place_of

INVALID = -32602
# Lifecycle requests, to which host calls from outside any call are attributed.
LASTING = frozenset(("initialize", "start", "stop", "destroy"))
# How long the reader may be busy before another thread continues reading, in seconds.
READER_TIMEOUT = 0.004
# Characters of an error message that are sent.
MAX_MESSAGE_CHARS = 4000
# Created once: `json.dumps` creates an encoder for each call with options.
SCAN = json.JSONDecoder().scan_once
ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
# The id of the host's request in progress.
CALL = contextvars.ContextVar("call", default=None)


class Failure(Exception):
    """An error that is reported to the caller."""

    def __init__(self, message, code=1, data=None):
        super().__init__(message)
        self.code, self.data = code, data


class Question:
    """A pending host call, and the callback for its answer."""

    __slots__ = ("params", "told", "updated", "error", "result")

    def __init__(self, params, told, updated=None):
        self.params, self.told, self.updated, self.error, self.result = params, told, updated, None, None

    def answered(self):
        if self.error is not None:
            raise Failure(self.error["message"], 1, self.error.get("data"))
        return self.result


class Wire:
    """Messages to the host and from it."""

    def __init__(self, source, output):
        self.source, self.output = source, output
        # Complete lines that were read, in reverse order; and the chunks of the incomplete line after them.
        self.heard, self.begun = [], []
        self.writing, self.state, self.most = threading.Lock(), threading.Lock(), 8 << 20
        self.asked, self.questions, self.held = 0, {}, []
        # Open requests; those that host calls from outside any call are attributed to; running coroutines.
        self.open, self.lasting, self.tasks = set(), [], {}
        # Open requests that are hooks or renderers; what keeps them from side effects; where the extension may write.
        self.hooks, self.guard, self.data_dir = set(), None, None
        self.leader, self.lines, self.busy = None, 0, False
        self.watched, self.parked, self.rest = False, False, threading.Lock()
        self.rest.acquire()
        self.loop, self.asyncio = None, None

    # Reading.

    def talk(self, serve):
        self.serve = serve
        self.leader = threading.get_ident()
        self.read_on()
        # Another thread reads now. This is the main thread, and the process exits with it.
        threading.Event().wait()

    def line(self):
        """The next line. Exits the process at the end of the stream."""
        while not self.heard:
            more = os.read(self.source, 1 << 16)
            if not more:
                os._exit(0)
            *lines, rest = more.split(b"\n")
            if lines:
                lines[0] = b"".join((*self.begun, lines[0]))
                self.begun = []
                lines.reverse()
                self.heard = lines
            self.begun.append(rest)
        return self.heard.pop()

    def read_on(self):
        """Reads and serves while this is the reader thread. An invalid message exits the process."""
        try:
            self.read_and_serve(threading.get_ident())
        except BaseException as error:
            print_error(error)
            os._exit(1)

    def read_and_serve(self, me):
        while True:
            message = SCAN(self.line().decode(), 0)[0]
            self.lines += 1
            method = message.get("method")
            if method is None:
                self.take_answer(message)
            elif method == "cancel":
                self.cancel(message["params"]["id"])
            elif method == "update":
                self.take_update(message["params"])
            else:
                self.answer(message["id"], method, message.get("params"))
                with self.state:
                    if self.leader != me:
                        return
                    self.busy = False

    def watch(self):
        """Takes over when the reader thread is busy for too long. Sleeps while there is nothing to do."""
        quiet = 0
        while True:
            lines = self.lines
            time.sleep(READER_TIMEOUT)
            with self.state:
                late = self.busy and self.lines == lines
                if late:
                    self.leader, self.busy, self.watched = threading.get_ident(), False, False
            if late:
                return self.read_on()
            quiet = quiet + 1 if self.lines == lines else 0
            if quiet > 5:
                quiet = 0
                with self.state:
                    rests = self.parked = not self.busy
                if rests:
                    self.rest.acquire()

    def step_aside(self):
        """Called before this thread waits for an answer: if it is the reader thread, another one takes over."""
        with self.state:
            if self.leader != threading.get_ident():
                return
            self.leader, self.busy = None, False
        reader = threading.Thread(target=self.lead, daemon=True)
        reader.start()

    def lead(self):
        with self.state:
            self.leader = threading.get_ident()
        self.read_on()

    # Answering.

    def answer(self, number, method, params):
        CALL.set(number)
        if method == "hello":
            self.most, self.data_dir = params.get("line_bytes", self.most), params.get("data_dir")
        self.begin(number, method, params)
        try:
            result = self.serve(method, params)
            if hasattr(result, "__await__"):
                return self.start(number, result)
            self.say_result(number, result)
        except BaseException as error:
            self.say_error(number, error)

    def begin(self, number, method, params):
        self.open.add(number)
        if method == "hook" or method == "function" and params["role"] == "renderer":
            self.hooks.add(number)
            self.guard = self.guard or self.guarded()
        with self.state:
            self.busy, watched = True, self.watched and not self.parked
        if not watched:
            self.rouse()
        if method in LASTING or method == "function" and params["role"] == "service":
            with self.state:
                self.lasting.append(number)
                held, self.held = self.held, []
            for question in held:
                self.put(question, number)

    def rouse(self):
        """Starts or wakes the watcher, which takes over if this thread is busy for too long."""
        with self.state:
            parked = self.watched
            self.watched, self.parked = True, False
        if parked:
            self.rest.release()
        else:
            threading.Thread(target=self.watch, daemon=True).start()

    def guarded(self):
        """Keeps hooks from side effects, from the first one on."""
        from .guard import Guard

        guard = Guard(self, self.data_dir)
        guard.watch()
        return guard

    def done(self, number):
        self.open.discard(number)
        self.hooks.discard(number)
        if number in self.lasting:
            with self.state:
                self.lasting.remove(number)

    def say_result(self, number, result):
        try:
            text = ENCODE(result)
        except (TypeError, ValueError):
            from .shapes import plain

            text = json.dumps(plain(result), ensure_ascii=False)
        self.write('{"jsonrpc":"2.0","id":%d,"result":%s}\n' % (number, text), number)

    def say_error(self, number, error):
        if isinstance(error, Failure):
            told = {"code": error.code, "message": str(error)[:MAX_MESSAGE_CHARS], "data": error.data}
        elif self.asyncio and isinstance(error, self.asyncio.CancelledError):
            told = {"code": 1, "message": "cancelled"}
        else:
            self.log_traceback(error)
            told = {"code": 1, "message": described(error)[:MAX_MESSAGE_CHARS], "data": place_of(error)}
        self.done(number)
        self.say(id=number, error=told)

    def log_traceback(self, error):
        """Logs the traceback for who looks for details; the answer has the error itself in one line."""
        import traceback

        for part in traceback.format_exception(type(error), error, error.__traceback__):
            for line in part.rstrip().split("\n"):
                self.say(method="log", params={"level": "debug", "text": line[:MAX_MESSAGE_CHARS]})

    def say(self, **message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n")

    def write(self, text, answers=None):
        line = text.encode("utf-8", "replace")
        if len(line) > self.most:
            raise Failure(f"a message of {len(line)} bytes is too long: at most {self.most} are sent")
        if answers is not None:
            self.done(answers)
        with self.writing:
            sent = os.write(self.output, line)
            while sent < len(line):
                sent += os.write(self.output, line[sent:])

    # Coroutines.

    def running_loop(self):
        """The event loop, on its own thread."""
        if self.loop is None:
            import asyncio

            self.asyncio, loop = asyncio, asyncio.new_event_loop()
            in_executor = loop.run_in_executor
            # What runs in an executor belongs to the call that asked for it.
            loop.run_in_executor = lambda executor, func, *args: in_executor(executor, contextvars.copy_context().run, func, *args)
            threading.Thread(target=self.run_loop, args=(loop,), daemon=True).start()
            self.loop = loop
        return self.loop

    def run_loop(self, loop):
        """Runs the event loop. What ends it, such as `sys.exit` in a task, ends the process: nothing could be served any more."""
        self.asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        except BaseException as error:
            print_error(error)
        os._exit(1)

    def start(self, number, awaitable):
        self.running_loop().call_soon_threadsafe(self.start_task, number, awaitable)

    def start_task(self, number, awaitable):
        task = self.loop.create_task(whole(awaitable))
        self.tasks[number] = task
        task.add_done_callback(lambda done: self.finished(number, done))

    def finished(self, number, task):
        self.tasks.pop(number, None)
        if task.cancelled():
            return self.say_error(number, self.asyncio.CancelledError())
        error = task.exception()
        if error is not None:
            return self.say_error(number, error)
        try:
            self.say_result(number, task.result())
        except BaseException as error:
            self.say_error(number, error)

    def cancel(self, number):
        """Cancels a coroutine. A plain function cannot be cancelled; its answer is ignored."""
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.cancel_task, number)

    def cancel_task(self, number):
        if number in self.tasks:
            self.tasks[number].cancel()

    # Asking.

    def ask(self, name, arguments=None, timeout_ms=None):
        """Makes a host call and waits. Not for coroutines: it blocks the event loop."""
        waiting = threading.Lock()
        waiting.acquire()
        question = self.question(lambda _: waiting.release(), name, arguments, timeout_ms)
        self.step_aside()
        waiting.acquire()
        return question.answered()

    async def ask_later(self, name, arguments=None, timeout_ms=None):
        """Makes a host call from a coroutine."""
        loop = self.asyncio.get_running_loop()
        waiting = loop.create_future()
        wake = lambda: waiting.done() or waiting.set_result(None)
        question = self.question(lambda _: loop.call_soon_threadsafe(wake), name, arguments, timeout_ms)
        await waiting
        return question.answered()

    async def ask_streamed(self, name, arguments, updated):
        """The same; `updated` gets what happens meanwhile, one update after the other."""
        loop = self.asyncio.get_running_loop()
        happened = self.asyncio.Queue()
        put = lambda it: loop.call_soon_threadsafe(happened.put_nowait, it)
        question = self.question(lambda _: put(None), name, arguments, None, put)
        while (update := await happened.get()) is not None:
            await updated(update)
        return question.answered()

    def tell(self, name, arguments, failed):
        """Makes a host call without waiting; `failed` is called if it fails."""

        def told(question):
            if question.error is not None:
                failed(question.error["message"])

        self.question(told, name, arguments, None)

    def announce_connection(self):
        """Says that the next connection belongs to this call, and waits until the host knows."""
        call = self.call_in_progress()
        if call is None:
            return
        waiting = threading.Lock()
        waiting.acquire()
        with self.state:
            self.asked += 1
            number = self.asked
            self.questions[number] = Question({}, lambda _: waiting.release())
        self.say(id=number, method="connecting", params={"call": call})
        self.step_aside()
        waiting.acquire()

    def call_in_progress(self):
        """The call that this code belongs to; outside any call a lasting one, if there is one."""
        call = CALL.get()
        if call in self.open:
            return call
        return self.lasting[-1] if self.lasting else None

    def question(self, told, name, arguments, timeout_ms, updated=None):
        from .shapes import plain

        params = {"name": name, "arguments": plain(arguments)}
        if timeout_ms is not None:
            params["timeout_ms"] = timeout_ms
        if updated is not None:
            params["updates"] = True
        question = Question(params, told, updated)
        with self.state:
            call = self.call_in_progress()
            if call is None:
                # Outside any call: queued until a lifecycle request is open.
                self.held.append(question)
                return question
        self.put(question, call)
        return question

    def put(self, question, call):
        with self.state:
            self.asked += 1
            number = self.asked
            self.questions[number] = question
        try:
            self.say(id=number, method="ask", params={"call": call, **question.params})
        except Failure as failure:
            self.take_answer({"id": number, "error": {"message": str(failure)}})

    def take_update(self, update):
        with self.state:
            question = self.questions.get(update["question"])
        if question is not None and question.updated is not None:
            question.updated(update)

    def take_answer(self, message):
        with self.state:
            question = self.questions.pop(message["id"], None)
        if question is not None:
            question.error, question.result = message.get("error"), message.get("result")
            question.told(question)


async def whole(awaitable):
    return await awaitable


def print_error(error):
    """Logs the traceback."""
    import traceback

    traceback.print_exception(type(error), error, error.__traceback__)
