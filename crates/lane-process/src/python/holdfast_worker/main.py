"""The entry point: reserves standard input and output for messages, loads the target, and serves requests."""

import os
import sys

from . import imports
from .report import described
from .wire import Failure, Wire


def main():
    kind, target = sys.argv[1:3]
    source, output = os.dup(0), os.dup(1)
    # Output of the extension must not mix with messages, and it must not read them.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    sys.stdout = sys.stderr
    imports.prepare()
    # What the extension starts as `python3` has its packages, too.
    os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    wire = Wire(source, output)
    wire.talk(serving(kind, target, wire))


def serving(kind, target, wire):
    """The request handler. If the target cannot be loaded, every request fails with the reason."""
    try:
        if kind == "class":
            from .classes import ClassExtension

            return ClassExtension(target, wire).serve
        from .files import Channel, Tool

        return (Channel if kind == "channel" else Tool)(target, wire).serve
    except BaseException as error:  # An extension may call `exit`.
        why = str(error) if isinstance(error, Failure) else described(error)

        def refuse(method, params):
            raise Failure(why)

        return refuse
