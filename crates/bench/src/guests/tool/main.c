/* The tool that `holdfast bench` installs and calls. */
#include "holdfast.h"

static holdfast_answer answer(holdfast_text arguments) {
    (void)arguments;
    return holdfast_plain(HOLDFAST_TEXT("here"));
}

HOLDFAST_TOOLS({.name = "bench_answer",
                .description = "Answers that it is here.",
                .input_schema = "{\"type\":\"object\"}",
                .effects = HOLDFAST_PURE,
                .call = answer})
