"""Listening on ports. Which ones may be bound was settled when the process was started; the host is told of every port that is bound, and
says which command grants one that is not."""

import functools
import socket

INTERNET = (socket.AF_INET, socket.AF_INET6)


def watch(wire, extension):
    """Tells the host of every port before it is bound, without waiting."""
    bind = socket.socket.bind
    warn = lambda message: wire.say(method="log", params={"level": "warning", "text": message})

    @functools.wraps(bind)
    def told(self, address):
        port = address[1] if self.family in INTERNET and isinstance(address, tuple) else 0
        if not port:
            return bind(self, address)
        wire.tell("network.listen", {"port": port}, warn)
        try:
            return bind(self, address)
        except PermissionError as error:
            why = f"{error.strerror}: `{extension}` was not granted port {port}; `holdfast ext grant {extension} --listen {port}`"
            raise PermissionError(error.errno, why) from None

    socket.socket.bind = told
