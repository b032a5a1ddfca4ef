/* The gate that `holdfast bench` measures: it looks at the whole of the arguments' first and last byte, and allows. */
#include "holdfast.h"

static holdfast_answer gate(holdfast_call call) {
    int object = call.arguments.length > 1 && call.arguments.data[0] == '{' &&
                 call.arguments.data[call.arguments.length - 1] == '}';
    return object ? holdfast_allow() : holdfast_deny("the arguments are no object");
}

HOLDFAST_TOOL_GATE(gate)
