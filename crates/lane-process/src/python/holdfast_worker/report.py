"""Exceptions as one line, with their location in the extension's own files."""

import os

OURS = os.path.dirname(os.path.abspath(__file__))


def place_of(error):
    """The class, the message and the location of an exception."""
    name, file, line = type(error).__name__, None, None
    if isinstance(error, SyntaxError) and error.filename:
        said, file, line = error.msg, error.filename, error.lineno
    else:
        said = str(error)
        frames, step = [], error.__traceback__
        while step is not None:
            frames.append((step.tb_frame.f_code.co_filename, step.tb_lineno))
            step = step.tb_next
        theirs = [it for it in frames if not it[0].startswith((OURS, "<"))]
        own = [it for it in theirs if it[0].startswith(os.getcwd() + os.sep)] or theirs
        if own:
            file, line = own[-1]
    if file and file.startswith(os.getcwd() + os.sep):
        file = os.path.relpath(file)
    elif file:
        file = os.path.basename(file)
    return {"class": name, "message": said[:4000], "file": file, "line": line}


def described(error):
    at = place_of(error)
    file = (at["file"] or "").removeprefix("tools/").removeprefix("channels/")
    place = f" ({file}, line {at['line']})" if file else ""
    return f"{at['class']}: {at['message']}{place}" if at["message"] else f"{at['class']}{place}"
