/* The caller in C. */
#include "holdfast.h"
#include "holdfast_records.h"

static void call_all(void) {
    holdfast_text answer, none = {0, 0};
    holdfast_secret_keep(HOLDFAST_TEXT("TOKEN"), HOLDFAST_TEXT("hunter2"));
    holdfast_agents(&answer);
    holdfast_invoke_tool(HOLDFAST_TEXT("hum"), HOLDFAST_TEXT("{\"n\":1}"), &answer);
    holdfast_invoke_model(HOLDFAST_TEXT("a line"), HOLDFAST_TEXT("be brief"), HOLDFAST_TEXT("poet"), &answer);
    holdfast_describe_agent(HOLDFAST_TEXT("poet"), &answer);
    holdfast_list_threads(none, HOLDFAST_TEXT("chat"), none, 1, &answer);
    holdfast_update_thread(HOLDFAST_TEXT("t1"), HOLDFAST_TEXT("{\"title\":\"Plans\"}"), &answer);
    holdfast_history(HOLDFAST_TEXT("t1"), &answer);
    holdfast_list_projects(&answer);
    holdfast_update_project(HOLDFAST_TEXT("garden"), HOLDFAST_TEXT("{\"name\":\"Garden\"}"), &answer);
    holdfast_remove_project(HOLDFAST_TEXT("garden"));
    holdfast_read_result(1ull << 32 | 1, 0, 10, &answer);
    holdfast_find_tools(HOLDFAST_TEXT("hum"), 3, &answer);
    holdfast_list_capabilities(&answer);
    holdfast_setup_open(&answer);
    holdfast_setup_show(HOLDFAST_TEXT("nobody"), &answer);
    holdfast_setup_apply(HOLDFAST_TEXT("nobody"), HOLDFAST_TEXT("x"), HOLDFAST_TEXT("1"), &answer);
    holdfast_doctor(HOLDFAST_TEXT("nobody"), &answer);
}

static holdfast_answer run(holdfast_text arguments) {
    (void)arguments;
    call_all();
    return holdfast_plain(HOLDFAST_TEXT("made"));
}

static holdfast_answer gate(holdfast_call call) {
    if (holdfast_same(call.tool, HOLDFAST_TEXT("probe"))) call_all();
    return holdfast_allow();
}

HOLDFAST_TOOLS({
    .name = "call_all",
    .description = "Makes every call.",
    .input_schema = "{\"type\":\"object\"}",
    .effects = HOLDFAST_WRITE,
    .call = run,
})
HOLDFAST_TOOL_GATE(gate)
