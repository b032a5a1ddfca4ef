/* The follower in C. */
#include "holdfast.h"

static void told(holdfast_builder *text, holdfast_update update) {
    holdfast_add(text, update.calls_tool ? update.tool : update.text);
    if (update.calls_tool) holdfast_add(text, update.arguments);
}

static holdfast_answer follow(holdfast_text arguments) {
    holdfast_text agent, task, answer;
    holdfast_builder text = {0};
    holdfast_update update;
    uint32_t invocation;
    if (!holdfast_text_field(arguments, "agent", &agent) || !holdfast_text_field(arguments, "task", &task))
        return holdfast_invalid("name an agent and a task");
    if (holdfast_same(task, HOLDFAST_TEXT("as many as there may be"))) {
        uint32_t open = 0;
        while (open < 100 && holdfast_invoke_streamed(agent, task, &invocation, &answer)) open++;
        holdfast_add_number(&text, open);
        holdfast_add(&text, HOLDFAST_TEXT(": "));
        holdfast_add(&text, answer);
        return holdfast_plain(holdfast_built(&text));
    }
    if (!holdfast_invoke_streamed(agent, task, &invocation, &answer)) return (holdfast_answer){1, 3, 0, answer};
    if (holdfast_same(task, HOLDFAST_TEXT("while the clock is read"))) holdfast_now();
    if (holdfast_field(arguments, "first", &answer)) {
        if (holdfast_next(invocation, &update)) told(&text, update);
        holdfast_invocation_drop(invocation);
        return holdfast_plain(holdfast_built(&text));
    }
    while (holdfast_next(invocation, &update)) {
        told(&text, update);
        holdfast_add(&text, HOLDFAST_TEXT(" "));
    }
    int is_there = holdfast_invocation_answer(invocation, &answer);
    holdfast_invocation_drop(invocation);
    if (!is_there) return (holdfast_answer){1, 3, 0, answer};
    holdfast_now();
    holdfast_add(&text, HOLDFAST_TEXT("= "));
    holdfast_add(&text, answer);
    return holdfast_plain(holdfast_built(&text));
}

HOLDFAST_TOOLS({
    .name = "follow",
    .description = "Follows an agent while it answers.",
    .input_schema = "{\"type\":\"object\",\"properties\":{\"agent\":{\"type\":\"string\"},\"task\":{\"type\":\"string\"},"
                    "\"first\":{\"type\":\"boolean\"}},\"required\":[\"agent\",\"task\"]}",
    .effects = HOLDFAST_WRITE,
    .call = follow,
})
