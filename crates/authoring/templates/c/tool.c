/* A tool. `holdfast ext build {{id}}` builds the component, `holdfast ext test {{id}}` runs tests.yaml.
 * holdfast.h is part of the program; `holdfast docs extensions/c` documents it. */
#include "holdfast.h"

static holdfast_answer count_words(holdfast_text arguments) {
    holdfast_text text;
    if (!holdfast_text_field(arguments, "text", &text)) return holdfast_invalid("`text` must be text");
    int64_t words = 0;
    for (uint32_t i = 0, inside = 0; i < text.length; i++) {
        int space = text.data[i] == ' ' || text.data[i] == '\t' || text.data[i] == '\n' || text.data[i] == '\r';
        if (!space && !inside) words++;
        inside = !space;
    }
    holdfast_builder built = {0};
    holdfast_add_number(&built, words);
    return holdfast_json(holdfast_built(&built));
}

HOLDFAST_TOOLS({.name = "count_words",
                .description = "Counts the words of a text.",
                .input_schema = "{\"type\":\"object\",\"required\":[\"text\"],\"additionalProperties\":false,\"properties\":"
                                "{\"text\":{\"type\":\"string\",\"description\":\"The text to count.\"}}}",
                .effects = HOLDFAST_PURE,
                .call = count_words})
