/* A gate over tool calls. `holdfast ext build {{id}}` makes the component, `holdfast ext test {{id}}` runs tests.yaml.
 * holdfast.h comes with the program; docs/extensions/c.md says what is in it. */
#include "holdfast.h"

/* Asked about each call that the manifest's matcher fits. A gate that fails or is late has denied. */
static holdfast_answer gate(holdfast_call call) {
    if (holdfast_same(call.tool, HOLDFAST_TEXT("delete_file"))) return holdfast_deny("delete_file is not allowed here");
    return holdfast_allow();
}

HOLDFAST_TOOL_GATE(gate)
