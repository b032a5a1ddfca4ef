"""The conformance extension's tool as a plain file: what it is told stands in its argument `do`."""

import json

from holdfast_worker.wire import INVALID, Failure


def run(do: str):
    """Does what it is told."""
    where, _, rest = do.partition(" ")
    verb, _, text = rest.partition(" ")
    if verb in ("invalid", "refused", "missing", "failed"):
        raise Failure(text, INVALID if verb == "invalid" else 1)
    if verb == "text":
        return text
    return json.loads(text) if verb == "json" else {"do": do}
