/* A guardrail over answers. `holdfast ext build {{id}}` makes the component, `holdfast ext test {{id}}` runs tests.yaml.
 * holdfast.h comes with the program; docs/extensions/c.md says what is in it. */
#include "holdfast.h"

/* Asked about each answer before anybody sees it. A guardrail that fails or is late has blocked. */
static holdfast_answer guard(holdfast_content answer) {
    if (holdfast_contains(answer.text, HOLDFAST_TEXT("bluebird"))) return holdfast_block("the answer holds a forbidden word");
    return holdfast_allow();
}

HOLDFAST_GUARD_OUTPUT(guard)
