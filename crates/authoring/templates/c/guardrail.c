/* A guardrail over answers. `holdfast ext build {{id}}` builds the component, `holdfast ext test {{id}}` runs tests.yaml.
 * holdfast.h is part of the program; `holdfast docs extensions/c` documents it. */
#include "holdfast.h"

/* Called for each answer before it is shown. A guardrail that fails or times out blocks the answer. */
static holdfast_answer guard(holdfast_content answer) {
    if (holdfast_contains(answer.text, HOLDFAST_TEXT("bluebird"))) return holdfast_block("the answer holds a forbidden word");
    return holdfast_allow();
}

HOLDFAST_GUARD_OUTPUT(guard)
