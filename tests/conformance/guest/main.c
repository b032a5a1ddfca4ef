/* The conformance extension in C: every role and every hook point, each doing what its directive says (directive.h). The header has
 * macros for the common hooks; the others are laid out here by hand, as the canonical ABI wants them.
 * tests/tests/conformance/native.rs is the same in Rust. */
#include "directive.h"

#define NONE ((holdfast_text){0, 0})
static uint32_t area[12];

static uint32_t address(const void *pointer) { return (uint32_t)(size_t)pointer; }

/* ---- what a deed comes to ---------------------------------------------------------------------------------------------- */

/* The deed among these words, by its place; a failure in its own words; or the first word. */
static holdfast_answer worded(deed done, const char *const *words) {
    holdfast_answer answer;
    if (failing(done, &answer)) return answer;
    for (uint32_t word = 0; words[word]; word++)
        if (is(done.verb, words[word])) return (holdfast_answer){0, word, 0, done.text};
    return (holdfast_answer){0, 0, 0, NONE};
}

static holdfast_answer rewritten(deed done) {
    if (is(done.verb, "json")) return (holdfast_answer){0, 1, 1, done.text};
    const char *const words[] = {"nothing", "replace", 0};
    return worded(done, words);
}

static holdfast_answer sanitized(deed done) {
    if (is(done.verb, "json")) return (holdfast_answer){0, 1, 1, done.text};
    const char *const words[] = {"unchanged", "replace", "flag", "block", 0};
    return worded(done, words);
}

static holdfast_answer judged(deed done) {
    const char *const words[] = {"allow", "flag", "block", 0};
    return worded(done, words);
}

static holdfast_answer written(deed done) {
    const char *const words[] = {"nothing", "inject", 0};
    return worded(done, words);
}

static deed on_text(const char *where, holdfast_content content) {
    return directive(where, content.kind == HOLDFAST_PLAIN ? content.text : NONE, NONE);
}

static deed on_result(const char *where, holdfast_call call, holdfast_content content) {
    return directive(where, content.kind == HOLDFAST_PLAIN ? content.text : NONE, call.arguments);
}

/* ---- hooks that the header knows ----------------------------------------------------------------------------------------- */

static holdfast_answer gate(holdfast_call call) {
    const char *const words[] = {"allow", "deny", "ask", 0};
    return worded(directive("tool_gate", NONE, call.arguments), words);
}

static holdfast_answer input_normalise(holdfast_content text) { return rewritten(on_text("input_normalise", text)); }
static holdfast_answer sanitize_input(holdfast_content text) { return sanitized(on_text("sanitize_input", text)); }
static holdfast_answer guard_input(holdfast_content text) { return judged(on_text("guard_input", text)); }
static holdfast_answer context(holdfast_content prompt) { return written(on_text("context", prompt)); }
static holdfast_answer sanitize_output(holdfast_content text) { return sanitized(on_text("sanitize_output", text)); }
static holdfast_answer guard_output(holdfast_content text) { return judged(on_text("guard_output", text)); }
static holdfast_answer guard_chunk(holdfast_content text) { return judged(on_text("guard_chunk", text)); }
static holdfast_answer response_process(holdfast_content text) { return rewritten(on_text("response_process", text)); }
static holdfast_answer compaction_provide(holdfast_content text) { return rewritten(on_text("compaction_provide", text)); }

static holdfast_answer sanitize_result(holdfast_call call, holdfast_content result) {
    return sanitized(on_result("sanitize_result", call, result));
}

static holdfast_answer guard_result(holdfast_call call, holdfast_content result) {
    return judged(on_result("guard_result", call, result));
}

HOLDFAST_TOOL_GATE(gate)
HOLDFAST_INPUT_NORMALISE(input_normalise)
HOLDFAST_SANITIZE_INPUT(sanitize_input)
HOLDFAST_GUARD_INPUT(guard_input)
HOLDFAST_CONTEXT(context)
HOLDFAST_SANITIZE_RESULT(sanitize_result)
HOLDFAST_GUARD_RESULT(guard_result)
HOLDFAST_SANITIZE_OUTPUT(sanitize_output)
HOLDFAST_GUARD_OUTPUT(guard_output)
HOLDFAST_GUARD_CHUNK(guard_chunk)
HOLDFAST_RESPONSE_PROCESS(response_process)
HF_TEXT_HOOK("compaction-provide", "compaction-provide", compaction_provide, hf_word, compaction_provide)

/* ---- hooks that observe, and the steps of a life --------------------------------------------------------------------------- */

static uint32_t *observed(const char *where, holdfast_text subject) {
    const char *const words[] = {"nothing", 0};
    return hf_word(worded(directive(where, subject, NONE), words));
}

#define AFTER(interface, function, name) \
    __attribute__((export_name("cabi_post_" HF_INTERFACE(interface) "#" function), used)) \
    void after_##name(uint32_t *answer) { (void)answer, hf_top = 0; }
#define STEP(interface, function, name, where) \
    HF_EXPORT(interface, function) uint32_t *name(void) { return observed(where, NONE); } \
    AFTER(interface, function, name)

STEP("lifecycle-initialize", "initialize", initialize, "initialize")
STEP("lifecycle-start", "start", start, "start")
STEP("lifecycle-stop", "stop", stop, "stop")
STEP("lifecycle-destroy", "destroy", destroy, "destroy")
STEP("session-start", "session-start", session_start, "session_start")
STEP("session-end", "session-end", session_end, "session_end")
STEP("session-cancel", "session-cancel", session_cancel, "session_cancel")
STEP("turn-start", "turn-start", turn_start, "turn_start")

HF_EXPORT("turn-end", "turn-end") uint32_t *turn_end(uint32_t some, uint32_t kind, const char *data, uint32_t length) {
    return observed("turn_end", some && kind == HOLDFAST_PLAIN ? (holdfast_text){data, length} : NONE);
}
AFTER("turn-end", "turn-end", turn_end)

HF_EXPORT("lifecycle-health", "health-check") uint32_t health_check(void) {
    uint32_t well = !is(directive("health", NONE, NONE).verb, "unwell");
    hf_top = 0;
    return well;
}

/* ---- hooks with answers of their own ---------------------------------------------------------------------------------------- */

/* The area as it is for a failure or for nothing at all; 0 where there is something to lay out. */
static uint32_t *empty_answer(deed done) {
    holdfast_answer answer;
    for (uint32_t i = 0; i < 12; i++) area[i] = 0;
    if (failing(done, &answer)) return hf_word(answer);
    return done.verb.length ? 0 : area;
}

static uint32_t put(uint32_t place, holdfast_text text) {
    area[place] = address(text.data), area[place + 1] = text.length;
    return place + 2;
}

static void put_optional(uint32_t place, int some, holdfast_text text) {
    area[place] = (uint32_t)some;
    put(place + 1, some ? text : NONE);
}

HF_EXPORT("model-route", "model-route") uint32_t *model_route(uint32_t kind, const char *data, uint32_t length) {
    deed done = on_text("model_route", hf_given(kind, data, length));
    uint32_t *nothing = empty_answer(done);
    if (nothing) return nothing;
    holdfast_text reason = done.text, model = take(&reason, " ");
    area[1] = 1;
    area[put(2, model)] = is(done.verb, "order");
    put(5, reason);
    return area;
}
AFTER("model-route", "model-route", model_route)

HF_EXPORT("tool-modify", "tool-modify")
uint32_t *tool_modify(uint64_t id, const char *tool, uint32_t tool_length, const char *arguments, uint32_t length) {
    (void)id, (void)tool, (void)tool_length;
    deed done = directive("tool_modify", NONE, (holdfast_text){arguments, length});
    uint32_t *nothing = empty_answer(done);
    if (nothing) return nothing;
    area[1] = 1;
    put_optional(2, is(done.verb, "arguments"), done.text);
    put_optional(5, is(done.verb, "implementation"), done.text);
    return area;
}
AFTER("tool-modify", "tool-modify", tool_modify)

HF_EXPORT("tool-after", "tool-after")
uint32_t *tool_after(uint64_t id, const char *tool, uint32_t tool_length, const char *arguments, uint32_t length,
                     uint32_t kind, const char *data, uint32_t data_length) {
    holdfast_call call = {id, {tool, tool_length}, {arguments, length}};
    deed done = on_result("tool_after", call, hf_given(kind, data, data_length));
    uint32_t *nothing = empty_answer(done);
    if (nothing) return nothing;
    area[1] = 1;
    area[2] = is(done.verb, "result") || is(done.verb, "json");
    area[3] = is(done.verb, "json");
    put(4, area[2] ? done.text : NONE);
    if (is(done.verb, "artifact")) {
        holdfast_text content = done.text, name = take(&content, " ");
        uint32_t *artifact = holdfast_allocate(7 * sizeof *artifact);
        artifact[0] = address(name.data), artifact[1] = name.length;
        artifact[2] = address("text/plain"), artifact[3] = 10, artifact[4] = 0;
        artifact[5] = address(content.data), artifact[6] = content.length;
        area[6] = address(artifact), area[7] = 1;
    }
    put_optional(8, is(done.verb, "render"), done.text);
    return area;
}
AFTER("tool-after", "tool-after", tool_after)

HF_EXPORT("compaction-before", "compaction-before") uint32_t *compaction_before(void) {
    deed done = directive("compaction_before", NONE, NONE);
    uint32_t *nothing = empty_answer(done);
    if (nothing) return nothing;
    holdfast_text instructions = done.text;
    area[1] = 1;
    if (is(done.verb, "keep")) area[5] = 1, area[6] = number(take(&instructions, " "));
    put_optional(2, instructions.length > 0, instructions);
    return area;
}
AFTER("compaction-before", "compaction-before", compaction_before)

/* ---- roles that are called --------------------------------------------------------------------------------------------------- */

/* What a tool, method, agent or command answers: text, JSON, a failure, or else what it was given. */
static uint32_t *answered(deed done, holdfast_answer otherwise) {
    holdfast_answer answer;
    if (failing(done, &answer)) return hf_word(answer);
    if (is(done.verb, "text")) return hf_word(holdfast_plain(done.text));
    if (is(done.verb, "json")) return hf_word(holdfast_json(done.text));
    return hf_word(otherwise);
}

#define ANY "{\"type\":\"object\"}"
#define COUNTED "{\"properties\":{\"count\":{\"type\":\"integer\"}},\"required\":[\"count\"],\"type\":\"object\"}"

HF_EXPORT("tools", "list") uint32_t *tools_list(void) {
    hf_tool_spec *specs = holdfast_allocate(3 * sizeof *specs);
    specs[0] = (hf_tool_spec){.name = HOLDFAST_TEXT("act"),
                              .description = HOLDFAST_TEXT("Does what it is told."),
                              .input_schema = HOLDFAST_TEXT(ANY),
                              .effects = HOLDFAST_PURE};
    specs[1] = (hf_tool_spec){.name = HOLDFAST_TEXT("change"),
                              .description = HOLDFAST_TEXT("Says that it changes things."),
                              .input_schema = HOLDFAST_TEXT(ANY),
                              .effects = HOLDFAST_WRITE,
                              .has_timeout = 1,
                              .timeout_ms = 2000};
    specs[2] = (hf_tool_spec){.name = HOLDFAST_TEXT("typed"),
                              .description = HOLDFAST_TEXT("Takes a count and promises text."),
                              .input_schema = HOLDFAST_TEXT(COUNTED),
                              .has_output = 1,
                              .effects = HOLDFAST_PURE,
                              .has_render = 1};
    specs[2].output_data = address("{\"type\":\"string\"}"), specs[2].output_length = 17;
    specs[2].render_data = address("{\"as\":\"table\"}"), specs[2].render_length = 14;
    area[0] = address(specs), area[1] = 3;
    return area;
}
AFTER("tools", "list", tools_list)

HF_EXPORT("tools", "call")
uint32_t *tools_call(const char *tool, uint32_t tool_length, const char *arguments, uint32_t length) {
    (void)tool, (void)tool_length;
    holdfast_text given = {arguments, length};
    return answered(directive("tool", NONE, given), holdfast_json(given));
}
AFTER("tools", "call", tools_call)

static uint32_t *named(holdfast_text name, holdfast_text description) {
    holdfast_text *record = holdfast_allocate(2 * sizeof *record);
    record[0] = name, record[1] = description;
    area[0] = address(record), area[1] = 1;
    return area;
}

HF_EXPORT("api", "methods") uint32_t *api_methods(void) {
    return named(HOLDFAST_TEXT("obey"), HOLDFAST_TEXT("Does what it is told."));
}
AFTER("api", "methods", api_methods)

HF_EXPORT("api", "call")
uint32_t *api_call(const char *method, uint32_t method_length, const char *arguments, uint32_t length) {
    (void)method, (void)method_length;
    holdfast_text given = {arguments, length};
    return answered(directive("api", NONE, given), holdfast_json(given));
}
AFTER("api", "call", api_call)

HF_EXPORT("agent", "descriptor") uint32_t *agent_descriptor(void) {
    put(0, HOLDFAST_TEXT("helper"));
    put(2, HOLDFAST_TEXT("Helps in words."));
    area[4] = 0;
    return area;
}
AFTER("agent", "descriptor", agent_descriptor)

HF_EXPORT("agent", "invoke") uint32_t *agent_invoke(const char *task, uint32_t length) {
    holdfast_text given = {task, length};
    return answered(directive("agent", given, NONE), holdfast_plain(given));
}
AFTER("agent", "invoke", agent_invoke)

HF_EXPORT("commands", "list") uint32_t *commands_list(void) {
    return named(HOLDFAST_TEXT("obey"), HOLDFAST_TEXT("Does what it is told."));
}
AFTER("commands", "list", commands_list)

HF_EXPORT("commands", "run")
uint32_t *commands_run(const char *name, uint32_t name_length, const char *arguments, uint32_t length) {
    (void)name, (void)name_length;
    holdfast_text given = {arguments, length};
    return answered(directive("command", given, NONE), holdfast_plain(given));
}
AFTER("commands", "run", commands_run)

/* `**tool** what`; nothing for the tool `plain`. */
static uint32_t *shown(holdfast_text tool, holdfast_text what) {
    holdfast_builder text = {0};
    area[0] = !is(tool, "plain");
    holdfast_add(&text, HOLDFAST_TEXT("**"));
    holdfast_add(&text, tool);
    holdfast_add(&text, HOLDFAST_TEXT("** "));
    holdfast_add(&text, what);
    put(1, holdfast_built(&text));
    return area;
}

HF_EXPORT("render-call", "render-call")
uint32_t *render_call(const char *tool, uint32_t tool_length, const char *arguments, uint32_t length) {
    return shown((holdfast_text){tool, tool_length}, (holdfast_text){arguments, length});
}
AFTER("render-call", "render-call", render_call)

HF_EXPORT("render-result", "render-result")
uint32_t *render_result(const char *tool, uint32_t tool_length, uint32_t kind, const char *data, uint32_t length) {
    (void)kind;
    return shown((holdfast_text){tool, tool_length}, (holdfast_text){data, length});
}
AFTER("render-result", "render-result", render_result)
