"""Hooks have no side effects: what a hook would connect to, write, remove or start is refused here, before it happens.

The interpreter reports these operations to an audit hook. If the call that does one is a hook or a renderer, it is made as a host call
instead, which the host refuses and records, and the hook gets a `PermissionError`. Files in the extension's own data folder and in its
temporary folder are its own and are left alone, and so are reads. What a library in C does without the interpreter is not seen here; a
connection of it is refused by the gateway while a hook is open.
"""

import contextvars
import errno
import os
import sys
import threading

from .wire import CALL, Failure

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Operations that start a program.
STARTS = ("subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn")
# Operations that change a file: the host call that they are refused as, and where the arguments have paths and their folders.
CHANGES = {
    "os.chmod": ("file.write", (0,), (2,)),
    "os.chown": ("file.write", (0,), (3,)),
    "os.link": ("file.write", (1,), (3,)),
    "os.mkdir": ("file.make_folder", (0,), (2,)),
    "os.remove": ("file.remove", (0,), (1,)),
    "os.rename": ("file.remove", (0, 1), (2, 3)),
    "os.rmdir": ("file.remove", (0,), (1,)),
    "os.symlink": ("file.write", (1,), (2,)),
    "os.truncate": ("file.write", (0,), ()),
    "os.utime": ("file.write", (0,), (3,)),
}
# All of them: the audit hook is called for every operation of the interpreter, most of which are none of these.
WATCHED = frozenset(("open", "socket.connect", "socket.sendto", "socket.getaddrinfo", "urllib.Request", *STARTS, *CHANGES))


class Guard:
    """What the calls in progress may do."""

    def __init__(self, wire, data_dir):
        self.wire = wire
        folders = [data_dir, os.environ.get("TMPDIR")]
        self.own = [os.path.realpath(it) + os.sep for it in folders if it]
        self.own += [os.devnull + os.sep]

    def watch(self):
        """Watches the interpreter from now on. A thread belongs to the call that starts it."""
        start = threading.Thread.start

        def started(thread):
            context, run = contextvars.copy_context(), thread.run
            thread.run = lambda: context.run(run)
            start(thread)

        threading.Thread.start = started
        sys.addaudithook(self.audit)

    def audit(self, event, arguments):
        if event not in WATCHED or not self.wire.hooks:
            return
        if CALL.get() in self.wire.hooks:
            refused = self.refused(event, arguments)
            if refused is not None:
                self.refuse(*refused)
        elif event == "socket.connect" and is_remote(arguments[1]):
            self.wire.announce_connection()

    def refused(self, event, arguments):
        """The host call that an operation is refused as; none if a hook may do it."""
        if event == "open":
            path, _, flags = arguments
            writes = isinstance(flags, int) and flags & WRITES and not isinstance(path, int)
            return self.changed("file.write", path) if writes else None
        if event in CHANGES:
            name, paths, folders = CHANGES[event]
            places = [arguments[it] for it in folders] + [-1] * len(paths)
            found = (self.changed(name, arguments[it], place) for it, place in zip(paths, places))
            return next((it for it in found if it is not None), None)
        if event in STARTS:
            return "program.start", {"operation": event, "program": text(arguments[0]) if arguments else ""}
        host = connected_to(event, arguments)
        return ("network.connect", host) if host is not None else None

    def changed(self, name, path, folder=-1):
        """A change of a file; none if it is the extension's own."""
        if isinstance(path, int):
            path = os.readlink(f"/proc/self/fd/{path}")
        elif folder is not None and folder >= 0:
            path = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), text(path))
        path = os.path.abspath(text(path))
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)) + os.sep
        return None if real.startswith(tuple(self.own)) else (name, {"path": path})

    def refuse(self, name, arguments):
        try:
            self.wire.ask(name, arguments)
        except Failure as failure:
            raise PermissionError(errno.EPERM, str(failure)) from None
        raise PermissionError(errno.EPERM, f"a hook may not call `{name}`")


def connected_to(event, arguments):
    """The host and port that an operation would connect to; none if it connects to nothing remote."""
    if event == "urllib.Request":
        from urllib.parse import urlsplit

        url = urlsplit(text(arguments[0]))
        if url.scheme not in ("http", "https", "ftp") or not url.hostname:
            return None
        return {"host": url.hostname, "port": url.port or {"http": 80, "https": 443, "ftp": 21}[url.scheme]}
    if event == "socket.getaddrinfo":
        host, port = arguments[:2]
        # The address of a listener of its own.
        return None if host is None else {"host": text(host), "port": port if isinstance(port, int) else 0}
    address = arguments[1]
    return {"host": text(address[0]), "port": address[1]} if is_remote(address) else None


def is_remote(address):
    """Whether it is an address of the network, not of a socket in a folder."""
    return isinstance(address, tuple)


def text(value):
    try:
        return os.fsdecode(value)
    except TypeError:
        return str(value)
