/* A gate over tool calls. `holdfast ext build {{id}}` builds the component, `holdfast ext test {{id}}` runs tests.yaml.
 * holdfast.h is part of the program; `holdfast docs extensions/c` documents it. */
#include "holdfast.h"

/* Called for each tool call that the manifest's matcher fits. A gate that fails or times out denies the call. */
static holdfast_answer gate(holdfast_call call) {
    if (holdfast_same(call.tool, HOLDFAST_TEXT("delete_file"))) return holdfast_deny("delete_file is not allowed here");
    return holdfast_allow();
}

HOLDFAST_TOOL_GATE(gate)
