/* The conformance extension as a native plugin in C: every role and every hook point, each doing what its directive says.
 * tests/tests/conformance/directive.rs says what a directive is. Memory of one call is freed when the call ends. */

#include "holdfast_plugin.h"

#define HOST_ROUNDS 128

/* What a call needs: the host, the request, and what was allocated on the way. */
typedef struct {
    const holdfast_host *host;
    holdfast_json request, subject, arguments, turn;
    char *kept[1024];
    size_t count;
    int failed; /* 0, or the code of the failure */
    const char *why;
} call_t;

static char *config; /* as JSON */

static char *keep(call_t *call, char *text) {
    if (call->count == sizeof call->kept / sizeof *call->kept) abort();
    return call->kept[call->count++] = text;
}

static char *text_of(call_t *call, holdfast_json value) { return keep(call, holdfast_json_text(value)); }

static char *raw(call_t *call, holdfast_json value) {
    char *text = malloc(value.length + 1);
    memcpy(text, value.start, value.length);
    text[value.length] = 0;
    return keep(call, text);
}

static char *copy(call_t *call, const char *from, size_t length) {
    holdfast_json value = {from, length};
    return raw(call, value);
}

/* What stands before a separator and after it. */
static char *split(call_t *call, const char *text, const char *separator, const char **rest) {
    const char *at = strstr(text, separator);
    *rest = at ? at + strlen(separator) : "";
    return copy(call, text, at ? (size_t)(at - text) : strlen(text));
}

static int one_of(const char *text, const char *const *all) {
    for (; *all; all++)
        if (strcmp(text, *all) == 0) return 1;
    return 0;
}

static const char *written(call_t *call, holdfast_writer *to) { return keep(call, to->data); }

static holdfast_json missing(void) {
    holdfast_json none = {NULL, 0};
    return none;
}

static holdfast_json result_of(call_t *call, const char *name, const char *arguments) {
    char *answer = keep(call, holdfast_ask(call->host, call->request, name, arguments));
    holdfast_json all = {answer, strlen(answer)}, error = holdfast_json_get(all, "error");
    if (error.start) {
        call->failed = 1;
        call->why = text_of(call, holdfast_json_get(error, "message"));
        return missing();
    }
    return holdfast_json_get(all, "result");
}

static const char *text_or_nothing(call_t *call, holdfast_json answer) {
    return holdfast_json_is(answer, "null") ? "nothing" : text_of(call, answer);
}

/* Asks the host; nothing if the host has no such verb. */
static const char *ask_host(call_t *call, const char *verb, const char *rest) {
    holdfast_writer to = {0};
    if (strcmp(verb, "clock") == 0) return text_of(call, result_of(call, "clock", "null"));
    if (strcmp(verb, "random") == 0) {
        holdfast_putf(&to, "{\"bytes\":$}", rest);
        return text_of(call, result_of(call, "random", written(call, &to)));
    }
    if (strcmp(verb, "remember") == 0) {
        const char *value, *key = split(call, rest, " ", &value);
        holdfast_putf(&to, "{\"key\":%,\"value\":$}", key, value);
        result_of(call, "state.set", written(call, &to));
        return "";
    }
    if (strcmp(verb, "forget") == 0) {
        holdfast_putf(&to, "{\"key\":%}", rest);
        result_of(call, "state.set", written(call, &to));
        return "";
    }
    if (strcmp(verb, "host") == 0) {
        const char *arguments, *name = split(call, rest, " ", &arguments);
        result_of(call, name, arguments);
        const char *outcome = call->failed ? "refused" : "served";
        /* The refusal is an answer here; the call has not failed. */
        call->failed = 0;
        return outcome;
    }
    if (strcmp(verb, "recall") == 0) {
        holdfast_putf(&to, "{\"key\":%}", rest);
        holdfast_json value = result_of(call, "state.get", written(call, &to));
        return !value.start || holdfast_json_is(value, "null") ? "nothing" : raw(call, value);
    }
    if (strcmp(verb, "tell") == 0) {
        holdfast_putf(&to, "{\"text\":%}", rest);
        result_of(call, "inject", written(call, &to));
        return "";
    }
    if (strcmp(verb, "log") == 0) {
        holdfast_log(call->host, rest);
        return "";
    }
    if (strcmp(verb, "config") == 0) {
        holdfast_json all = {config, strlen(config)}, value = holdfast_json_get(all, rest);
        return value.start ? raw(call, value) : "nothing";
    }
    if (strcmp(verb, "session") == 0) {
        if (!call->turn.start) return "outside";
        holdfast_json user = holdfast_json_get(call->turn, "user");
        holdfast_putf(&to, "$/$/$/$/$", text_of(call, holdfast_json_get(call->turn, "session")),
                      text_of(call, holdfast_json_get(call->turn, "turn")),
                      text_of(call, holdfast_json_get(call->turn, "agent")),
                      text_of(call, holdfast_json_get(call->turn, "channel")),
                      holdfast_json_is_text(user) ? text_of(call, user) : "nobody");
        return written(call, &to);
    }
    if (strcmp(verb, "select") == 0) {
        const char *options, *prompt = split(call, rest, ": ", &options);
        holdfast_putf(&to, "{\"select\":{\"prompt\":%,\"options\":[", prompt);
        for (int first = 1; first || *options; first = 0) {
            const char *option = split(call, options, ", ", &options);
            holdfast_putf(&to, first ? "%" : ",%", option);
        }
        holdfast_put_raw(&to, "]}}");
        return text_or_nothing(call, result_of(call, "ui", written(call, &to)));
    }
    if (strcmp(verb, "confirm") == 0) {
        holdfast_putf(&to, "{\"confirm\":{\"prompt\":%}}", rest);
        holdfast_json answer = result_of(call, "ui", written(call, &to));
        return holdfast_json_is(answer, "true") ? "yes" : holdfast_json_is(answer, "false") ? "no" : "nothing";
    }
    if (strcmp(verb, "input") == 0) {
        holdfast_putf(&to, "{\"input\":{\"prompt\":%}}", rest);
        return text_or_nothing(call, result_of(call, "ui", written(call, &to)));
    }
    if (strcmp(verb, "custom") == 0) {
        const char *after, *payload, *kind = split(call, rest, " ", &after);
        const char *prompt = split(call, after, ": ", &payload);
        holdfast_putf(&to, "{\"custom\":{\"prompt\":%,\"view\":{\"kind\":%,\"payload\":$}}}", prompt, kind, payload);
        holdfast_json answer = result_of(call, "ui", written(call, &to));
        return !answer.start || holdfast_json_is(answer, "null") ? "nothing" : raw(call, answer);
    }
    return NULL;
}

/* The line for this place in a text, or nothing. */
static const char *line_in(call_t *call, holdfast_json source, const char *place) {
    if (!holdfast_json_is_text(source)) return NULL;
    const char *lines = text_of(call, source);
    while (*lines) {
        const char *rest, *line = split(call, lines, "\n", &lines), *found = split(call, line, " ", &rest);
        if (strcmp(found, place) == 0) return rest;
    }
    return NULL;
}

static char *replaced(call_t *call, const char *text, const char *heard) {
    holdfast_writer to = {0};
    holdfast_put_raw(&to, "");
    for (; *text; text++) {
        if (*text == '%') holdfast_put_raw(&to, heard);
        else holdfast_put(&to, text, 1);
    }
    return keep(call, to.data);
}

/* A directive's last verb, once the host has been asked for the others. */
static const char *directive(call_t *call, const char *place, const char **text) {
    static const char *const failing[] = {"refused", "missing", "failed", NULL};
    holdfast_json all = {config, strlen(config)};
    const char *line = line_in(call, call->subject, place), *heard = "";
    if (!line) line = line_in(call, holdfast_json_get(call->arguments, "do"), place);
    if (!line) line = line_in(call, holdfast_json_get(all, "do"), place);
    *text = "";
    for (int rounds = 0; line && rounds < HOST_ROUNDS; rounds++) {
        const char *rest, *stage = split(call, line, " | ", &rest), *verb = split(call, stage, " ", text);
        const char *answer = ask_host(call, verb, *text);
        if (call->failed) return "";
        if (!answer) {
            *text = replaced(call, *text, heard);
            if (strcmp(verb, "invalid") == 0 || one_of(verb, failing)) {
                call->failed = strcmp(verb, "invalid") == 0 ? -32602 : 1;
                call->why = *text;
                return "";
            }
            return verb;
        }
        heard = answer;
        line = *rest ? rest : NULL;
    }
    *text = "";
    return "";
}

static const char *quoted(call_t *call, const char *text) {
    holdfast_writer to = {0};
    holdfast_put_text(&to, text);
    return written(call, &to);
}

static const char *told(call_t *call, const char *place, holdfast_json given) {
    const char *text, *verb;
    call->subject = given;
    verb = directive(call, place, &text);
    if (strcmp(verb, "text") == 0) return quoted(call, text);
    if (strcmp(verb, "json") == 0) return text;
    return given.start ? raw(call, given) : "null";
}

static const char *shown(call_t *call, holdfast_json tool, holdfast_json what) {
    holdfast_writer to = {0};
    const char *name = text_of(call, tool);
    if (strcmp(name, "plain") == 0) return "null";
    holdfast_putf(&to, "**$** $", name, text_of(call, what));
    return quoted(call, written(call, &to));
}

static const char *decide(call_t *call, holdfast_json params) {
    static const char *const reasons[] = {"deny", "ask", "flag", "block", NULL};
    static const char *const contents[] = {"inject", "replace", NULL};
    static const char *const allowing[] = {"guard_input", "guard_chunk", "tool_gate", "guard_result", "guard_output", NULL};
    const char *point = text_of(call, holdfast_json_get(params, "point")), *text, *verb;
    holdfast_writer to = {0};
    call->subject = holdfast_json_get(params, "subject");
    call->arguments = holdfast_json_get(holdfast_json_get(params, "call"), "arguments");
    verb = directive(call, point, &text);
    if (one_of(verb, reasons)) {
        holdfast_putf(&to, "{\"decision\":%,\"reason\":%}", verb, text);
    } else if (one_of(verb, contents)) {
        holdfast_putf(&to, "{\"decision\":%,\"content\":%}", verb, text);
    } else if (strcmp(verb, "route") == 0 || strcmp(verb, "order") == 0) {
        const char *reason, *model = split(call, text, " ", &reason);
        holdfast_putf(&to, "{\"decision\":\"route\",\"model\":%,\"authoritative\":$,\"reason\":%}", model,
                      strcmp(verb, "order") == 0 ? "true" : "false", reason);
    } else if (strcmp(verb, "arguments") == 0) {
        holdfast_putf(&to, "{\"decision\":\"modify\",\"arguments\":$}", text);
    } else if (strcmp(verb, "implementation") == 0) {
        holdfast_putf(&to, "{\"decision\":\"modify\",\"implementation\":%}", text);
    } else if (strcmp(verb, "result") == 0) {
        holdfast_putf(&to, "{\"decision\":\"enrich\",\"result\":%}", text);
    } else if (strcmp(verb, "json") == 0 && strcmp(point, "tool_after") == 0) {
        holdfast_putf(&to, "{\"decision\":\"enrich\",\"result\":$}", text);
    } else if (strcmp(verb, "json") == 0) {
        holdfast_putf(&to, "{\"decision\":\"replace\",\"content\":$}", text);
    } else if (strcmp(verb, "artifact") == 0) {
        const char *content, *name = split(call, text, " ", &content);
        holdfast_putf(&to, "{\"decision\":\"enrich\",\"artifacts\":[{\"name\":%,\"media_type\":\"text/plain\",\"content\":%}]}",
                      name, content);
    } else if (strcmp(verb, "render") == 0) {
        holdfast_putf(&to, "{\"decision\":\"enrich\",\"render\":$}", text);
    } else if (strcmp(verb, "keep") == 0) {
        const char *instructions, *number = split(call, text, " ", &instructions);
        holdfast_putf(&to, "{\"decision\":\"compact\",\"keep\":$,\"instructions\":$}", number,
                      *instructions ? quoted(call, instructions) : "null");
    } else if (strcmp(verb, "instructions") == 0) {
        holdfast_putf(&to, "{\"decision\":\"compact\",\"instructions\":%}", text);
    } else {
        return one_of(point, allowing) ? "{\"decision\":\"allow\"}" : "null";
    }
    return written(call, &to);
}

static const char *obey(call_t *call, const char *method, holdfast_json params) {
    static const char *const steps[] = {"initialize", "start", "stop", "destroy", NULL};
    holdfast_json arguments = holdfast_json_get(params, "arguments");
    const char *text;
    if (strcmp(method, "hook") == 0) {
        call->turn = holdfast_json_get(params, "turn");
        return decide(call, params);
    }
    if (strcmp(method, "tool") == 0) {
        call->turn = holdfast_json_get(params, "turn");
        if (holdfast_json_is(holdfast_json_get(params, "tool"), "\"helper\""))
            return told(call, "agent", holdfast_json_get(arguments, "task"));
        call->arguments = arguments;
        return told(call, "tool", arguments);
    }
    if (strcmp(method, "api") == 0) {
        call->arguments = arguments;
        return told(call, "api", arguments);
    }
    if (strcmp(method, "health") == 0) return strcmp(directive(call, "health", &text), "unwell") == 0 ? "false" : "true";
    if (one_of(method, steps)) {
        directive(call, method, &text);
        return "null";
    }
    const char *function = text_of(call, holdfast_json_get(params, "function"));
    if (strcmp(function, "run") == 0) return told(call, "command", holdfast_json_get(arguments, "arguments"));
    if (strcmp(function, "invoke") == 0) return told(call, "agent", holdfast_json_get(arguments, "task"));
    return shown(call, holdfast_json_get(arguments, "tool"),
                 holdfast_json_get(arguments, strcmp(function, "render-call") == 0 ? "arguments" : "result"));
}

static holdfast_buffer answer_call(const holdfast_host *host, const uint8_t *data, size_t length) {
    call_t call = {.host = host, .request = holdfast_json_of(data, length)};
    holdfast_buffer nothing = {NULL, 0}, answer;
    char *method = text_of(&call, holdfast_json_get(call.request, "method"));
    if (strcmp(method, "cancel") == 0) {
        free(method);
        return nothing;
    }
    const char *result = obey(&call, method, holdfast_json_get(call.request, "params"));
    answer = call.failed ? holdfast_error(call.request, call.failed, call.why) : holdfast_result(call.request, result);
    while (call.count) free(call.kept[--call.count]);
    return answer;
}

static holdfast_buffer describe(const uint8_t *data, size_t length) {
    static const char welcome[] =
        "{\"protocol\":\"0.1\",\"tools\":["
        "{\"name\":\"act\",\"description\":\"Does what it is told.\",\"effects\":\"pure\"},"
        "{\"name\":\"change\",\"description\":\"Says that it changes things.\",\"effects\":\"write\",\"timeout_ms\":2000},"
        "{\"name\":\"typed\",\"description\":\"Takes a count and promises text.\",\"effects\":\"pure\",\"input_schema\":"
        "{\"type\":\"object\",\"properties\":{\"count\":{\"type\":\"integer\"}},\"required\":[\"count\"]},"
        "\"output_schema\":{\"type\":\"string\"},\"render\":{\"as\":\"table\"}}],"
        "\"hooks\":[\"session_start\",\"turn_start\",\"input_normalise\",\"sanitize_input\",\"guard_input\",\"context\","
        "\"model_route\",\"guard_chunk\",\"tool_modify\",\"tool_gate\",\"tool_after\",\"sanitize_result\",\"guard_result\","
        "\"sanitize_output\",\"guard_output\",\"response_process\",\"compaction_before\",\"compaction_provide\","
        "\"session_cancel\",\"turn_end\",\"session_end\"],"
        "\"agent\":{\"name\":\"helper\",\"description\":\"Helps in words.\"},"
        "\"commands\":[{\"name\":\"obey\",\"description\":\"Does what it is told.\"}],"
        "\"methods\":[{\"name\":\"obey\",\"description\":\"Does what it is told.\"}],"
        "\"functions\":{\"lifecycle\":[\"initialize\",\"start\",\"stop\",\"destroy\",\"health-check\"],\"agent\":[\"invoke\"],"
        "\"commands\":[\"run\"],\"renderer\":[\"render-call\",\"render-result\"]}}";
    holdfast_json request = holdfast_json_of(data, length);
    holdfast_json found = holdfast_json_get(holdfast_json_get(request, "params"), "config");
    free(config);
    config = holdfast_json_text(found);
    return holdfast_result(request, welcome);
}

static void release(holdfast_buffer answer) { free(answer.data); }

const holdfast_plugin *holdfast_plugin_v1(void) {
    static const holdfast_plugin table = {HOLDFAST_PLUGIN_ABI, sizeof(holdfast_plugin), describe, answer_call, release};
    return &table;
}
