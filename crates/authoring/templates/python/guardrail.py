"""A guardrail over answers. `holdfast ext build {{id}}` builds the component, `holdfast ext test {{id}}` runs tests.yaml."""

from holdfast import allow, block, guard_output

FORBIDDEN = ("bluebird",)


@guard_output
def guard(answer):
    """Called for each answer before it is shown. A guardrail that fails or times out blocks the answer."""
    if any(word in answer for word in FORBIDDEN):
        return block("the answer holds a forbidden word")
    return allow()
