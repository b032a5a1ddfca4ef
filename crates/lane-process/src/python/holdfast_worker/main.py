"""The start: standard input and output are for messages alone, the target is brought in, and the conversation begins."""

import os
import sys

from . import imports
from .report import described
from .wire import Failure, Wire


def main():
    kind, target = sys.argv[1:3]
    source, output = os.dup(0), os.dup(1)
    # What the extension prints must not get between the messages, and what it reads must be none of them.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    sys.stdout = sys.stderr
    imports.prepare()
    wire = Wire(source, output)
    wire.talk(serving(kind, target, wire))


def serving(kind, target, wire):
    """What answers requests. One that cannot be brought in says why to whoever asks."""
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
