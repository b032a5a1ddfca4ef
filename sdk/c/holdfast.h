/* Holdfast extensions in C: one header, no library.
 *
 * A tool is a function in a table, a hook is a function named by a macro. See examples/checksum for a whole extension and
 * docs/extensions/c.md for every macro. `holdfast ext build` compiles the folder's .c files; include this header in exactly one
 * of them with the macros that export (HOLDFAST_TOOLS, HOLDFAST_TOOL_GATE …), in the others for the types.
 *
 * Memory: holdfast_allocate uses a heap that is reset at the beginning of every call. Nothing need be freed, and only `state`
 * persists between calls.
 */
#ifndef HOLDFAST_H
#define HOLDFAST_H

typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INT64_TYPE__ int64_t;
typedef __SIZE_TYPE__ size_t;
#define HF_INTERFACE(name) "holdfast:extension/" name "@0.1.0-draft"
#define HF_EXPORT(interface, function) __attribute__((export_name(HF_INTERFACE(interface) "#" function), used))
#define HF_IMPORT(interface, function) \
    extern __attribute__((import_module(HF_INTERFACE(interface)), import_name(function)))

/* Texts: UTF-8 with a length, not ended by a zero. */
typedef struct {
    const char *data;
    uint32_t length;
} holdfast_text;

#define HOLDFAST_TEXT(literal) ((holdfast_text){(literal), sizeof(literal) - 1})

/* Content: plain text, or JSON. */
typedef struct {
    enum { HOLDFAST_PLAIN, HOLDFAST_JSON } kind;
    holdfast_text text;
} holdfast_content;

/* The side effects of a tool. */
typedef enum {
    HOLDFAST_UNKNOWN,
    HOLDFAST_PURE,
    HOLDFAST_READ,
    HOLDFAST_WRITE,
    HOLDFAST_EXEC,
    HOLDFAST_NETWORK
} holdfast_effects;

/* A tool call as a hook sees it; the arguments are JSON. */
typedef struct {
    uint64_t id;
    holdfast_text tool;
    holdfast_text arguments;
} holdfast_call;

/* The answer of a function. Create one with the functions below. */
typedef struct {
    uint32_t failed; /* 0, or 1 and then `word` says which failure */
    uint32_t word;
    uint32_t kind; /* of the content, where there is one */
    holdfast_text text;
} holdfast_answer;

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

extern unsigned char __heap_base;
/* Weak, so that files that include this header share one heap. */
__attribute__((weak)) uint32_t hf_top, hf_answered;

static inline void *holdfast_allocate(uint32_t bytes) {
    /* An allocation after an answer belongs to the next call: the host has read the last answer. */
    if (hf_top == 0 || hf_answered) hf_top = (uint32_t)(size_t)&__heap_base, hf_answered = 0;
    uint32_t start = (hf_top + 7u) & ~7u, end = start + bytes;
    uint32_t have = (uint32_t)__builtin_wasm_memory_size(0) << 16;
    if (end < start) __builtin_trap();
    if (end > have && __builtin_wasm_memory_grow(0, (end - have + 65535u) >> 16) == (size_t)-1) __builtin_trap();
    hf_top = end;
    return (void *)(size_t)start;
}

static inline void hf_copy(void *to, const void *from, uint32_t bytes) {
    unsigned char *target = to;
    const unsigned char *source = from;
    while (bytes--) *target++ = *source++;
}

__attribute__((export_name("cabi_realloc"), weak)) void *cabi_realloc(void *old, size_t old_bytes, size_t align,
                                                                      size_t bytes) {
    (void)align;
    void *fresh = holdfast_allocate((uint32_t)bytes);
    if (old) hf_copy(fresh, old, (uint32_t)(old_bytes < bytes ? old_bytes : bytes));
    return fresh;
}

/* ---- texts ----------------------------------------------------------------------------------------------------------- */

static inline holdfast_text holdfast_from(const char *zero_ended) {
    uint32_t length = 0;
    while (zero_ended && zero_ended[length]) length++;
    return (holdfast_text){zero_ended, length};
}

static inline int holdfast_same(holdfast_text a, holdfast_text b) {
    if (a.length != b.length) return 0;
    for (uint32_t i = 0; i < a.length; i++)
        if (a.data[i] != b.data[i]) return 0;
    return 1;
}

/* Whether `whole` contains `part`. */
static inline int holdfast_contains(holdfast_text whole, holdfast_text part) {
    for (uint32_t i = 0; i + part.length <= whole.length; i++)
        if (holdfast_same((holdfast_text){whole.data + i, part.length}, part)) return 1;
    return 0;
}

/* A text that grows. Begin with `holdfast_builder b = {0};` */
typedef struct {
    char *data;
    uint32_t length, room;
} holdfast_builder;

static inline void holdfast_add(holdfast_builder *builder, holdfast_text text) {
    if (builder->length + text.length > builder->room) {
        builder->room = (builder->length + text.length) * 2 + 64;
        char *larger = holdfast_allocate(builder->room);
        hf_copy(larger, builder->data, builder->length);
        builder->data = larger;
    }
    hf_copy(builder->data + builder->length, text.data, text.length);
    builder->length += text.length;
}

static inline void holdfast_add_number(holdfast_builder *builder, int64_t number) {
    char digits[21];
    uint32_t at = sizeof digits;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do digits[--at] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0) digits[--at] = '-';
    holdfast_add(builder, (holdfast_text){digits + at, (uint32_t)sizeof digits - at});
}

/* The lowest `places` digits to the base 16. */
static inline void holdfast_add_hex(holdfast_builder *builder, uint64_t number, uint32_t places) {
    while (places--) {
        char digit = "0123456789abcdef"[(number >> (places * 4)) & 15];
        holdfast_add(builder, (holdfast_text){&digit, 1});
    }
}

/* A text as a JSON string, with its quotes. */
static inline void holdfast_add_json(holdfast_builder *builder, holdfast_text text) {
    holdfast_add(builder, HOLDFAST_TEXT("\""));
    for (uint32_t i = 0; i < text.length; i++) {
        unsigned char letter = (unsigned char)text.data[i];
        if (letter == '"' || letter == '\\') holdfast_add(builder, HOLDFAST_TEXT("\\"));
        if (letter < 0x20) {
            holdfast_add(builder, HOLDFAST_TEXT("\\u"));
            holdfast_add_hex(builder, letter, 4);
        } else {
            holdfast_add(builder, (holdfast_text){text.data + i, 1});
        }
    }
    holdfast_add(builder, HOLDFAST_TEXT("\""));
}

static inline holdfast_text holdfast_built(const holdfast_builder *builder) {
    return (holdfast_text){builder->data, builder->length};
}

/* ---- JSON from the host: canonical, so valid and without spaces -------------------------------------------------------- */

/* The end of the value that begins at `at`. */
static inline uint32_t hf_skip(holdfast_text json, uint32_t at) {
    uint32_t depth = 0;
    int in_text = 0;
    for (; at < json.length; at++) {
        char letter = json.data[at];
        if (in_text) {
            if (letter == '\\') at++;
            else if (letter == '"') in_text = 0;
        } else if (letter == '"') {
            in_text = 1;
        } else if (letter == '{' || letter == '[') {
            depth++;
        } else if (letter == '}' || letter == ']') {
            if (depth == 0) return at;
            depth--;
        } else if ((letter == ',' || letter == ':') && depth == 0) {
            return at;
        }
    }
    return at;
}

/* The value of a field of an object, as JSON. 0 if there is none. */
static inline int holdfast_field(holdfast_text object, const char *name, holdfast_text *value) {
    holdfast_text wanted = holdfast_from(name);
    uint32_t at = 1;
    while (at < object.length && object.data[at] == '"') {
        uint32_t colon = hf_skip(object, at), end = hf_skip(object, colon + 1);
        holdfast_text key = {object.data + at + 1, colon - at - 2};
        if (holdfast_same(key, wanted)) {
            *value = (holdfast_text){object.data + colon + 1, end - colon - 1};
            return 1;
        }
        at = end + 1;
    }
    return 0;
}

static inline uint32_t hf_hex4(const char *digits) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        char digit = digits[i];
        value = value * 16 + (uint32_t)(digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10);
    }
    return value;
}

static inline uint32_t hf_utf8(char *to, uint32_t point) {
    if (point < 0x80) return to[0] = (char)point, 1;
    if (point < 0x800) return to[0] = (char)(0xC0 | point >> 6), to[1] = (char)(0x80 | (point & 63)), 2;
    if (point < 0x10000)
        return to[0] = (char)(0xE0 | point >> 12), to[1] = (char)(0x80 | (point >> 6 & 63)),
               to[2] = (char)(0x80 | (point & 63)), 3;
    return to[0] = (char)(0xF0 | point >> 18), to[1] = (char)(0x80 | (point >> 12 & 63)),
           to[2] = (char)(0x80 | (point >> 6 & 63)), to[3] = (char)(0x80 | (point & 63)), 4;
}

/* A field that is text, without its quotes and escapes. 0 if there is none or it is something else. */
static inline int holdfast_text_field(holdfast_text object, const char *name, holdfast_text *text) {
    holdfast_text raw;
    if (!holdfast_field(object, name, &raw) || raw.length < 2 || raw.data[0] != '"') return 0;
    char *plain = holdfast_allocate(raw.length);
    uint32_t length = 0;
    for (uint32_t i = 1; i + 1 < raw.length; i++) {
        char letter = raw.data[i];
        if (letter != '\\') {
            plain[length++] = letter;
            continue;
        }
        letter = raw.data[++i];
        if (letter == 'u') {
            uint32_t point = hf_hex4(raw.data + i + 1);
            i += 4;
            if (point >= 0xD800 && point < 0xDC00 && raw.data[i + 1] == '\\') {
                point = 0x10000 + ((point - 0xD800) << 10) + (hf_hex4(raw.data + i + 3) - 0xDC00);
                i += 6;
            }
            length += hf_utf8(plain + length, point);
        } else {
            plain[length++] = letter == 'n' ? '\n' : letter == 't' ? '\t' : letter == 'r' ? '\r'
                            : letter == 'b' ? '\b' : letter == 'f' ? '\f' : letter;
        }
    }
    *text = (holdfast_text){plain, length};
    return 1;
}

/* A field that is a whole number. 0 if there is none or it is something else. */
static inline int holdfast_number_field(holdfast_text object, const char *name, int64_t *number) {
    holdfast_text raw;
    if (!holdfast_field(object, name, &raw) || raw.length == 0) return 0;
    uint32_t at = raw.data[0] == '-';
    uint64_t value = 0;
    if (at == raw.length) return 0;
    for (uint32_t i = at; i < raw.length; i++) {
        if (raw.data[i] < '0' || raw.data[i] > '9') return 0;
        value = value * 10 + (uint64_t)(raw.data[i] - '0');
    }
    *number = at ? -(int64_t)value : (int64_t)value;
    return 1;
}

/* ---- answers --------------------------------------------------------------------------------------------------------- */

static inline holdfast_answer holdfast_plain(holdfast_text text) { return (holdfast_answer){0, 0, 0, text}; }
static inline holdfast_answer holdfast_json(holdfast_text text) { return (holdfast_answer){0, 1, 1, text}; }
static inline holdfast_answer holdfast_invalid(const char *why) { return (holdfast_answer){1, 0, 0, holdfast_from(why)}; }
static inline holdfast_answer holdfast_denied(const char *why) { return (holdfast_answer){1, 1, 0, holdfast_from(why)}; }
static inline holdfast_answer holdfast_not_found(const char *what) { return (holdfast_answer){1, 2, 0, holdfast_from(what)}; }
static inline holdfast_answer holdfast_failed(const char *why) { return (holdfast_answer){1, 3, 0, holdfast_from(why)}; }
/* Gates. */
static inline holdfast_answer holdfast_allow(void) { return (holdfast_answer){0, 0, 0, {0, 0}}; }
static inline holdfast_answer holdfast_deny(const char *why) { return (holdfast_answer){0, 1, 0, holdfast_from(why)}; }
static inline holdfast_answer holdfast_ask(const char *why) { return (holdfast_answer){0, 2, 0, holdfast_from(why)}; }
/* Guardrails; they may also allow. */
static inline holdfast_answer holdfast_flag(const char *why) { return (holdfast_answer){0, 1, 0, holdfast_from(why)}; }
static inline holdfast_answer holdfast_block(const char *why) { return (holdfast_answer){0, 2, 0, holdfast_from(why)}; }
/* Sanitizers. */
static inline holdfast_answer holdfast_unchanged(void) { return (holdfast_answer){0, 0, 0, {0, 0}}; }
static inline holdfast_answer holdfast_replaced(holdfast_content by) {
    return (holdfast_answer){0, 1, (uint32_t)by.kind, by.text};
}
static inline holdfast_answer holdfast_flagged(const char *why) { return (holdfast_answer){0, 2, 0, holdfast_from(why)}; }
static inline holdfast_answer holdfast_blocked(const char *why) { return (holdfast_answer){0, 3, 0, holdfast_from(why)}; }
/* Context, normalisers, response processors: no text, or this text. */
static inline holdfast_answer holdfast_nothing(void) { return (holdfast_answer){0, 0, 0, {0, 0}}; }
static inline holdfast_answer holdfast_some(holdfast_text text) { return (holdfast_answer){0, 1, 0, text}; }

/* The memory layout of an answer in the canonical ABI. */
__attribute__((weak)) uint32_t hf_area[5];

static inline uint32_t *hf_laid_out(void) {
    hf_answered = 1;
    return hf_area;
}

/* result<V, failure>, where V's cases hold at most a text. */
static inline uint32_t *hf_word(holdfast_answer answer) {
    hf_area[0] = answer.failed, hf_area[1] = answer.word;
    hf_area[2] = (uint32_t)(size_t)answer.text.data, hf_area[3] = answer.text.length;
    return hf_laid_out();
}

/* result<sanitized, failure> and result<option<content>, failure>: one case holds a content. */
static inline uint32_t *hf_content(holdfast_answer answer) {
    if (answer.failed || answer.word != 1) return hf_word(answer);
    hf_area[0] = 0, hf_area[1] = 1, hf_area[2] = answer.kind;
    hf_area[3] = (uint32_t)(size_t)answer.text.data, hf_area[4] = answer.text.length;
    return hf_laid_out();
}

static inline holdfast_content hf_given(uint32_t kind, const char *data, uint32_t length) {
    return (holdfast_content){kind ? HOLDFAST_JSON : HOLDFAST_PLAIN, {data, length}};
}

/* ---- tools ----------------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *name, *description;
    const char *input_schema; /* JSON Schema of the arguments */
    holdfast_effects effects;
    uint32_t timeout_ms; /* 0: the host's default */
    holdfast_answer (*call)(holdfast_text arguments);
} holdfast_tool;

typedef struct {
    holdfast_text name, description, input_schema;
    uint32_t has_output, output_data, output_length;
    uint32_t effects;
    uint32_t has_timeout, timeout_ms;
    uint32_t has_render, render_data, render_length;
} hf_tool_spec;

/* HOLDFAST_TOOLS({ .name = …, .call = … }, { … }) exports the tools. */
#define HOLDFAST_TOOLS(...) \
    static const holdfast_tool hf_tools[] = {__VA_ARGS__}; \
    HF_EXPORT("tools", "list") uint32_t *hf_tools_list(void) { \
        uint32_t count = sizeof hf_tools / sizeof *hf_tools; \
        hf_tool_spec *specs = holdfast_allocate(count * sizeof *specs); \
        for (uint32_t i = 0; i < count; i++) \
            specs[i] = (hf_tool_spec){.name = holdfast_from(hf_tools[i].name), \
                                      .description = holdfast_from(hf_tools[i].description), \
                                      .input_schema = holdfast_from(hf_tools[i].input_schema), \
                                      .effects = hf_tools[i].effects, \
                                      .has_timeout = hf_tools[i].timeout_ms != 0, \
                                      .timeout_ms = hf_tools[i].timeout_ms}; \
        hf_area[0] = (uint32_t)(size_t)specs, hf_area[1] = count; \
        return hf_laid_out(); \
    } \
    HF_EXPORT("tools", "call") \
    uint32_t *hf_tools_call(const char *tool, uint32_t tool_length, const char *arguments, uint32_t length) { \
        for (uint32_t i = 0; i < sizeof hf_tools / sizeof *hf_tools; i++) \
            if (holdfast_same((holdfast_text){tool, tool_length}, holdfast_from(hf_tools[i].name))) \
                return hf_word(hf_tools[i].call((holdfast_text){arguments, length})); \
        return hf_word(holdfast_not_found("there is no such tool")); \
    }

/* ---- hooks ----------------------------------------------------------------------------------------------------------- */

#define HF_CALL_HOOK(interface, name, function) \
    HF_EXPORT(interface, interface) \
    uint32_t *hf_##name(uint64_t id, const char *tool, uint32_t tool_length, const char *arguments, uint32_t length) { \
        return hf_word(function((holdfast_call){id, {tool, tool_length}, {arguments, length}})); \
    }

#define HF_TEXT_HOOK(interface, exported, name, layout, function) \
    HF_EXPORT(interface, exported) uint32_t *hf_##name(uint32_t kind, const char *data, uint32_t length) { \
        return layout(function(hf_given(kind, data, length))); \
    }

#define HF_RESULT_HOOK(interface, name, layout, function) \
    HF_EXPORT(interface, interface) \
    uint32_t *hf_##name(uint64_t id, const char *tool, uint32_t tool_length, const char *arguments, uint32_t length, \
                        uint32_t kind, const char *data, uint32_t data_length) { \
        return layout(function((holdfast_call){id, {tool, tool_length}, {arguments, length}}, \
                               hf_given(kind, data, data_length))); \
    }

/* holdfast_answer f(holdfast_call): allow, deny, ask. */
#define HOLDFAST_TOOL_GATE(function) HF_CALL_HOOK("tool-gate", tool_gate, function)
/* holdfast_answer f(holdfast_content): allow, flag, block. */
#define HOLDFAST_GUARD_INPUT(function) HF_TEXT_HOOK("guard-input", "guard-input", guard_input, hf_word, function)
#define HOLDFAST_GUARD_OUTPUT(function) HF_TEXT_HOOK("guard-output", "guard-output", guard_output, hf_word, function)
#define HOLDFAST_GUARD_CHUNK(function) HF_TEXT_HOOK("guard-chunk", "guard-chunk", guard_chunk, hf_word, function)
/* holdfast_answer f(holdfast_call, holdfast_content): allow, flag, block. */
#define HOLDFAST_GUARD_RESULT(function) HF_RESULT_HOOK("guard-result", guard_result, hf_word, function)
/* holdfast_answer f(holdfast_content): unchanged, replaced, flagged, blocked. */
#define HOLDFAST_SANITIZE_INPUT(function) \
    HF_TEXT_HOOK("sanitize-input", "sanitize-input", sanitize_input, hf_content, function)
#define HOLDFAST_SANITIZE_OUTPUT(function) \
    HF_TEXT_HOOK("sanitize-output", "sanitize-output", sanitize_output, hf_content, function)
/* holdfast_answer f(holdfast_call, holdfast_content): unchanged, replaced, flagged, blocked. */
#define HOLDFAST_SANITIZE_RESULT(function) HF_RESULT_HOOK("sanitize-result", sanitize_result, hf_content, function)
/* holdfast_answer f(holdfast_content): nothing, some. */
#define HOLDFAST_CONTEXT(function) HF_TEXT_HOOK("context", "get-context", context, hf_word, function)
#define HOLDFAST_INPUT_NORMALISE(function) \
    HF_TEXT_HOOK("input-normalise", "input-normalise", input_normalise, hf_content, function)
#define HOLDFAST_RESPONSE_PROCESS(function) \
    HF_TEXT_HOOK("response-process", "response-process", response_process, hf_content, function)

/* ---- the host; what is not called is not imported ----------------------------------------------------------------------- */

typedef enum { HOLDFAST_DEBUG, HOLDFAST_INFO, HOLDFAST_WARNING, HOLDFAST_ERROR } holdfast_level;

HF_IMPORT("log", "log") void hf_host_log(uint32_t level, const char *data, uint32_t length);
HF_IMPORT("config", "get") void hf_host_config_get(const char *name, uint32_t length, uint32_t *area);
HF_IMPORT("state", "get") void hf_host_state_get(const char *key, uint32_t length, uint32_t *area);
HF_IMPORT("state", "set")
void hf_host_state_set(const char *key, uint32_t length, uint32_t some, const char *data, uint32_t data_length, uint32_t *area);
HF_IMPORT("messages", "inject") void hf_host_messages_inject(const char *data, uint32_t length, uint32_t *area);
HF_IMPORT("clock", "now") uint64_t hf_host_clock_now(void);
HF_IMPORT("random", "bytes") void hf_host_random_bytes(uint32_t count, uint32_t *area);
HF_IMPORT("events", "publish")
void hf_host_events_publish(const char *topic, uint32_t topic_length, const char *payload, uint32_t length, uint32_t some,
                            const char *key, uint32_t key_length, uint32_t *area);
HF_IMPORT("events", "publish-event")
void hf_host_events_publish_event(const char *topic, uint32_t topic_length, const char *payload, uint32_t length,
                                  uint32_t some_key, const char *key, uint32_t key_length, uint32_t some_correlation,
                                  const char *correlation, uint32_t correlation_length, uint32_t some_idempotency,
                                  const char *idempotency, uint32_t idempotency_length, uint32_t *area);
HF_IMPORT("subscriptions", "subscribe") void hf_host_subscribe(const char *topic, uint32_t length, uint32_t *area);
HF_IMPORT("subscriptions", "unsubscribe") void hf_host_unsubscribe(const char *topic, uint32_t length, uint32_t *area);
HF_IMPORT("secrets", "reference") void hf_host_secrets_reference(const char *name, uint32_t length, uint32_t *area);
HF_IMPORT("secrets", "get") void hf_host_secrets_get(const char *name, uint32_t length, uint32_t *area);
HF_IMPORT("agents", "invoke")
void hf_host_agents_invoke(uint32_t some, const char *agent, uint32_t agent_length, const char *task, uint32_t length,
                           uint32_t *area);
HF_IMPORT("agents", "invoke-streamed")
void hf_host_agents_invoke_streamed(uint32_t some, const char *agent, uint32_t agent_length, const char *task,
                                    uint32_t length, uint32_t *area);
HF_IMPORT("agents", "[method]invocation.next") void hf_host_invocation_next(uint32_t invocation, uint32_t *area);
HF_IMPORT("agents", "[method]invocation.answer") void hf_host_invocation_answer(uint32_t invocation, uint32_t *area);
HF_IMPORT("agents", "[resource-drop]invocation") void hf_host_invocation_drop(uint32_t invocation);
HF_IMPORT("channels", "notify")
void hf_host_channels_notify(const char *text, uint32_t length, uint32_t some_channel, const char *channel,
                             uint32_t channel_length, uint32_t some_user, const char *user, uint32_t user_length,
                             uint32_t *area);
HF_IMPORT("prompts", "enrich")
void hf_host_prompts_enrich(const char *prompt, uint32_t length, uint32_t some, const char *agent, uint32_t agent_length,
                            uint32_t *area);
HF_IMPORT("system", "restart")
void hf_host_system_restart(uint32_t some, const char *reason, uint32_t length, uint32_t *area);
HF_IMPORT("http", "send")
void hf_host_http_send(const char *method, uint32_t method_length, const char *url, uint32_t url_length,
                       const void *headers, uint32_t count, const char *body, uint32_t body_length, uint32_t some_timeout,
                       uint32_t timeout_ms, uint32_t *area);
HF_IMPORT("files", "read") void hf_host_files_read(const char *path, uint32_t length, uint32_t *area);
HF_IMPORT("files", "write")
void hf_host_files_write(const char *path, uint32_t length, const char *data, uint32_t data_length, uint32_t *area);
HF_IMPORT("files", "list") void hf_host_files_list(const char *path, uint32_t length, uint32_t *area);
HF_IMPORT("files", "remove") void hf_host_files_remove(const char *path, uint32_t length, uint32_t *area);
HF_IMPORT("files", "make-folder") void hf_host_files_make_folder(const char *path, uint32_t length, uint32_t *area);
HF_IMPORT("environment", "get") void hf_host_environment_get(const char *name, uint32_t length, uint32_t *area);

static inline void holdfast_log(holdfast_level level, holdfast_text message) {
    hf_host_log((uint32_t)level, message.data, message.length);
}

/* A value of the configuration, as JSON. 0 if there is none. */
static inline int holdfast_config(holdfast_text name, holdfast_text *json) {
    uint32_t area[3];
    hf_host_config_get(name.data, name.length, area);
    if (!(area[0] & 255)) return 0;
    *json = (holdfast_text){(const char *)(size_t)area[1], area[2]};
    return 1;
}

/* A value of the state, as JSON. 0 if there is none, -1 if the host failed. */
static inline int holdfast_state_get(holdfast_text key, holdfast_text *json) {
    uint32_t area[4];
    hf_host_state_get(key.data, key.length, area);
    if (area[0] & 255) return -1;
    if (!(area[1] & 255)) return 0;
    *json = (holdfast_text){(const char *)(size_t)area[2], area[3]};
    return 1;
}

/* Stores a value, as JSON; one without data removes it. 0 if the host failed. */
static inline int holdfast_state_set(holdfast_text key, holdfast_text json) {
    uint32_t area[4];
    hf_host_state_set(key.data, key.length, json.data != 0, json.data, json.length, area);
    return !(area[0] & 255);
}

static inline int holdfast_inject(holdfast_text text) {
    uint32_t area[4];
    hf_host_messages_inject(text.data, text.length, area);
    return !(area[0] & 255);
}

/* Milliseconds since 1970. */
static inline uint64_t holdfast_now(void) { return hf_host_clock_now(); }

static inline holdfast_text holdfast_random(uint32_t count) {
    uint32_t area[2];
    hf_host_random_bytes(count, area);
    return (holdfast_text){(const char *)(size_t)area[0], area[1]};
}

/* A key without data is not set. 0 if the host failed. */
static inline int holdfast_publish(holdfast_text topic, holdfast_text payload, holdfast_text key) {
    uint32_t area[4];
    hf_host_events_publish(topic.data, topic.length, payload.data, payload.length, key.data != 0, key.data, key.length, area);
    return !(area[0] & 255);
}

static inline int holdfast_secret(holdfast_text name, holdfast_text *reference) {
    uint32_t area[4];
    hf_host_secrets_reference(name.data, name.length, area);
    if (area[0] & 255) return 0;
    *reference = (holdfast_text){(const char *)(size_t)area[1], area[2]};
    return 1;
}

/* result<string, failure> and result<list<u8>, failure>: 1 with the text, 0 with the failure's text. */
static inline int hf_heard(const uint32_t *area, holdfast_text *text) {
    uint32_t at = area[0] & 255 ? 2 : 1;
    *text = (holdfast_text){(const char *)(size_t)area[at], area[at + 1]};
    return at == 1;
}

/* The value of a secret. Prefer the reference. 0 if the host failed; the text then says why. */
static inline int holdfast_secret_value(holdfast_text name, holdfast_text *value) {
    uint32_t area[4];
    hf_host_secrets_get(name.data, name.length, area);
    return hf_heard(area, value);
}

/* An event with what it answers; a text without data is not set. Gives the event's id, or why there is none. */
static inline int holdfast_publish_event(holdfast_text topic, holdfast_text payload, holdfast_text key,
                                         holdfast_text correlation, holdfast_text idempotency, holdfast_text *id) {
    uint32_t area[4];
    hf_host_events_publish_event(topic.data, topic.length, payload.data, payload.length, key.data != 0, key.data,
                                 key.length, correlation.data != 0, correlation.data, correlation.length,
                                 idempotency.data != 0, idempotency.data, idempotency.length, area);
    return hf_heard(area, id);
}

static inline int holdfast_subscribe(holdfast_text topic) {
    uint32_t area[4];
    hf_host_subscribe(topic.data, topic.length, area);
    return !(area[0] & 255);
}

static inline int holdfast_unsubscribe(holdfast_text topic) {
    uint32_t area[4];
    hf_host_unsubscribe(topic.data, topic.length, area);
    return !(area[0] & 255);
}

/* An agent's answer, as text or JSON; one without data is the main agent. 0 with why if the host failed. */
static inline int holdfast_invoke(holdfast_text agent, holdfast_text task, holdfast_text *answer) {
    uint32_t area[4];
    hf_host_agents_invoke(agent.data != 0, agent.data, agent.length, task.data, task.length, area);
    *answer = (holdfast_text){(const char *)(size_t)area[2], area[3]};
    return !(area[0] & 255);
}

/* Something that happens while an agent answers: more of its text, or a tool that it calls with arguments as JSON. */
typedef struct {
    int calls_tool;
    holdfast_text text, tool, arguments;
} holdfast_update;

/* The same, to be followed with holdfast_next. The agent is cancelled if the invocation is dropped before its end; drop every one. 0 with
 * why if the host failed. */
static inline int holdfast_invoke_streamed(holdfast_text agent, holdfast_text task, uint32_t *invocation,
                                           holdfast_text *why) {
    uint32_t area[4];
    hf_host_agents_invoke_streamed(agent.data != 0, agent.data, agent.length, task.data, task.length, area);
    if (area[0] & 255) return *why = (holdfast_text){(const char *)(size_t)area[2], area[3]}, 0;
    return *invocation = area[1], 1;
}

/* Waits for what happens next. 0 when the agent has finished. */
static inline int holdfast_next(uint32_t invocation, holdfast_update *update) {
    uint32_t area[6];
    hf_host_invocation_next(invocation, area);
    if (!(area[0] & 255)) return 0;
    holdfast_text first = {(const char *)(size_t)area[2], area[3]}, none = {0, 0};
    *update = area[1] & 255 ? (holdfast_update){1, none, first, {(const char *)(size_t)area[4], area[5]}}
                            : (holdfast_update){0, first, none, none};
    return 1;
}

/* Waits until the agent has finished: its answer, as text or JSON. 0 with why if it failed. */
static inline int holdfast_invocation_answer(uint32_t invocation, holdfast_text *answer) {
    uint32_t area[4];
    hf_host_invocation_answer(invocation, area);
    *answer = (holdfast_text){(const char *)(size_t)area[2], area[3]};
    return !(area[0] & 255);
}

static inline void holdfast_invocation_drop(uint32_t invocation) { hf_host_invocation_drop(invocation); }

/* Sends the user a message; a channel and a user without data are the default ones. */
static inline int holdfast_notify(holdfast_text text, holdfast_text channel, holdfast_text user, holdfast_text *id) {
    uint32_t area[4];
    hf_host_channels_notify(text.data, text.length, channel.data != 0, channel.data, channel.length, user.data != 0,
                            user.data, user.length, area);
    return hf_heard(area, id);
}

static inline int holdfast_enrich(holdfast_text prompt, holdfast_text agent, holdfast_text *enriched) {
    uint32_t area[4];
    hf_host_prompts_enrich(prompt.data, prompt.length, agent.data != 0, agent.data, agent.length, area);
    return hf_heard(area, enriched);
}

static inline int holdfast_restart(holdfast_text reason) {
    uint32_t area[4];
    hf_host_system_restart(reason.data != 0, reason.data, reason.length, area);
    return !(area[0] & 255);
}

typedef struct {
    holdfast_text name, value;
} holdfast_header;

typedef struct {
    uint32_t status;
    const holdfast_header *headers;
    uint32_t header_count;
    holdfast_text body;
} holdfast_response;

/* Sends a request. 0 if there is no response; its body then says why. */
static inline int holdfast_http(const char *method, holdfast_text url, const holdfast_header *headers, uint32_t count,
                                holdfast_text body, holdfast_response *response) {
    uint32_t area[6];
    holdfast_text word = holdfast_from(method);
    hf_host_http_send(word.data, word.length, url.data, url.length, headers, count, body.data, body.length, 0, 0, area);
    if (area[0] & 255) {
        *response = (holdfast_response){0, 0, 0, {(const char *)(size_t)area[2], area[3]}};
        return 0;
    }
    *response = (holdfast_response){area[1] & 0xFFFF,
                                    (const holdfast_header *)(size_t)area[2],
                                    area[3],
                                    {(const char *)(size_t)area[4], area[5]}};
    return 1;
}

/* A file's content. 0 with why if the host failed. */
static inline int holdfast_file_read(holdfast_text path, holdfast_text *content) {
    uint32_t area[4];
    hf_host_files_read(path.data, path.length, area);
    return hf_heard(area, content);
}

static inline int holdfast_file_write(holdfast_text path, holdfast_text content) {
    uint32_t area[4];
    hf_host_files_write(path.data, path.length, content.data, content.length, area);
    return !(area[0] & 255);
}

typedef struct {
    holdfast_text name;
    uint32_t kind; /* 0 a file, 1 a folder, 2 a link, 3 something else */
    uint32_t unused;
    uint64_t size;
} holdfast_entry;

/* What is in a folder. 0 if the host failed. */
static inline int holdfast_file_list(holdfast_text path, const holdfast_entry **entries, uint32_t *count) {
    uint32_t area[4];
    hf_host_files_list(path.data, path.length, area);
    if (area[0] & 255) return 0;
    *entries = (const holdfast_entry *)(size_t)area[1];
    *count = area[2];
    return 1;
}

static inline int holdfast_file_remove(holdfast_text path) {
    uint32_t area[4];
    hf_host_files_remove(path.data, path.length, area);
    return !(area[0] & 255);
}

static inline int holdfast_make_folder(holdfast_text path) {
    uint32_t area[4];
    hf_host_files_make_folder(path.data, path.length, area);
    return !(area[0] & 255);
}

/* A granted variable of the host. 0 if it is not set, -1 if the host failed. */
static inline int holdfast_variable(holdfast_text name, holdfast_text *value) {
    uint32_t area[4];
    hf_host_environment_get(name.data, name.length, area);
    if (area[0] & 255) return -1;
    if (!(area[1] & 255)) return 0;
    *value = (holdfast_text){(const char *)(size_t)area[2], area[3]};
    return 1;
}

#endif
