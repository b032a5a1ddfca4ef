"""A guardrail over answers. `holdfast ext build {{id}}` makes the component, `holdfast ext test {{id}}` runs tests.yaml."""

from holdfast import allow, block, guard_output

FORBIDDEN = ("bluebird",)


@guard_output
def guard(answer):
    """Asked about each answer before anybody sees it. A guardrail that fails or is late has blocked."""
    if any(word in answer for word in FORBIDDEN):
        return block("the answer holds a forbidden word")
    return allow()
