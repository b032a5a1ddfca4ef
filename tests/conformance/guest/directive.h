/* What the extension is told to do, and how it does the part that needs the host.
 *
 * A directive is a line `WHERE [HOST-VERB … |]… VERB TEXT`: WHERE is a hook point or a role. It stands in what is judged, in the call's
 * argument `do`, or in the configuration's `do`, whichever has one first. In TEXT a `%` stands for what the host answered last.
 * tests/tests/conformance/directive.rs is the same in Rust. */
#ifndef DIRECTIVE_H
#define DIRECTIVE_H

#include "ask.h"

HF_IMPORT("config", "all") void host_config_all(uint32_t *area);
HF_IMPORT("session", "current") void host_session_current(uint32_t *area);
#ifndef UNGRANTED
HF_IMPORT("ui", "select")
void host_ui_select(const char *prompt, uint32_t length, const holdfast_text *options, uint32_t count, uint32_t *area);
HF_IMPORT("ui", "input") void host_ui_input(const char *prompt, uint32_t length, uint32_t *area);
HF_IMPORT("ui", "custom")
void host_ui_custom(const char *kind, uint32_t kind_length, const char *prompt, uint32_t length, const char *payload,
                    uint32_t payload_length, uint32_t *area);
#endif

/* What is left to do once the host has been asked: a verb and its text. Without a directive the verb is empty. */
typedef struct {
    holdfast_text verb, text;
} deed;

static inline int is(holdfast_text text, const char *word) { return holdfast_same(text, holdfast_from(word)); }

static inline holdfast_text at_address(uint32_t data, uint32_t length) {
    return (holdfast_text){(const char *)(size_t)data, length};
}

/* Takes what stands before a separator; all of it where there is none. */
static inline holdfast_text take(holdfast_text *rest, const char *separator) {
    holdfast_text by = holdfast_from(separator);
    for (uint32_t i = 0; i + by.length <= rest->length; i++)
        if (holdfast_same((holdfast_text){rest->data + i, by.length}, by)) {
            holdfast_text taken = {rest->data, i};
            *rest = (holdfast_text){rest->data + i + by.length, rest->length - i - by.length};
            return taken;
        }
    holdfast_text taken = *rest;
    rest->length = 0;
    return taken;
}

static inline int directive_in(holdfast_text lines, const char *where, holdfast_text *found) {
    while (lines.length) {
        holdfast_text line = take(&lines, "\n");
        if (is(take(&line, " "), where)) return *found = line, 1;
    }
    return 0;
}

static inline uint32_t number(holdfast_text digits) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < digits.length; i++) value = value * 10 + (uint32_t)(digits.data[i] - '0');
    return value;
}

static inline holdfast_text session_text(void) {
    uint32_t area[11];
    holdfast_builder text = {0};
    host_session_current(area);
    if (!(area[0] & 255)) return HOLDFAST_TEXT("outside");
    holdfast_add(&text, at_address(area[1], area[2]));
    holdfast_add(&text, HOLDFAST_TEXT("/"));
    holdfast_add_number(&text, area[3]);
    for (int i = 4; i < 8; i += 2) {
        holdfast_add(&text, HOLDFAST_TEXT("/"));
        holdfast_add(&text, at_address(area[i], area[i + 1]));
    }
    holdfast_add(&text, HOLDFAST_TEXT("/"));
    holdfast_add(&text, area[8] & 255 ? at_address(area[9], area[10]) : HOLDFAST_TEXT("nobody"));
    return holdfast_built(&text);
}

#ifndef UNGRANTED
/* result<option<string>, failure> as text. */
static inline holdfast_text optional_text(const uint32_t *area) {
    if (area[0] & 255) return at_address(area[2], area[3]);
    return area[1] & 255 ? at_address(area[2], area[3]) : HOLDFAST_TEXT("nothing");
}

static inline holdfast_text select_text(holdfast_text rest) {
    uint32_t area[4], count = 0;
    holdfast_text prompt = take(&rest, ": "), *options = holdfast_allocate(8 * sizeof *options);
    while (rest.length && count < 8) options[count++] = take(&rest, ", ");
    host_ui_select(prompt.data, prompt.length, options, count, area);
    return optional_text(area);
}

static inline holdfast_text confirm_text(holdfast_text prompt) {
    uint32_t area[4];
    host_ui_confirm(prompt.data, prompt.length, area);
    if (area[0] & 255) return at_address(area[2], area[3]);
    if (!(area[1] & 255)) return HOLDFAST_TEXT("nothing");
    return area[1] >> 8 & 255 ? HOLDFAST_TEXT("yes") : HOLDFAST_TEXT("no");
}

/* Asks the user. 0 if there is no such verb. */
static inline int ask_user(holdfast_text verb, holdfast_text rest, holdfast_text *heard) {
    uint32_t area[4];
    if (is(verb, "select")) {
        *heard = select_text(rest);
    } else if (is(verb, "confirm")) {
        *heard = confirm_text(rest);
    } else if (is(verb, "input")) {
        host_ui_input(rest.data, rest.length, area);
        *heard = optional_text(area);
    } else if (is(verb, "custom")) {
        holdfast_text kind = take(&rest, " "), prompt = take(&rest, ": ");
        host_ui_custom(kind.data, kind.length, prompt.data, prompt.length, rest.data, rest.length, area);
        *heard = optional_text(area);
    } else {
        return 0;
    }
    return 1;
}
#else
static inline int ask_user(holdfast_text verb, holdfast_text rest, holdfast_text *heard) {
    (void)verb, (void)rest, (void)heard;
    return 0;
}
#endif

/* Asks the host. 0 if the host has no such verb. What has no answer gives nothing at all. */
static inline int ask_host(holdfast_text verb, holdfast_text rest, holdfast_text *heard) {
    holdfast_builder text = {0};
    if (is(verb, "clock")) {
        holdfast_add_number(&text, (int64_t)holdfast_now());
        *heard = holdfast_built(&text);
    } else if (is(verb, "random")) {
        holdfast_text bytes = holdfast_random(number(rest));
        for (uint32_t i = 0; i < bytes.length; i++) holdfast_add_hex(&text, (uint8_t)bytes.data[i], 2);
        *heard = holdfast_built(&text);
    } else if (is(verb, "remember")) {
        holdfast_text key = take(&rest, " ");
        holdfast_state_set(key, rest);
    } else if (is(verb, "forget")) {
        holdfast_state_set(rest, (holdfast_text){0, 0});
    } else if (is(verb, "recall")) {
        if (holdfast_state_get(rest, heard) != 1) *heard = HOLDFAST_TEXT("nothing");
    } else if (is(verb, "tell")) {
        holdfast_inject(rest);
    } else if (is(verb, "host")) {
        holdfast_text name = take(&rest, " ");
        int is_served = ask(name, rest);
        if (is_served < 0) __builtin_trap();
        *heard = is_served ? HOLDFAST_TEXT("served") : HOLDFAST_TEXT("refused");
    } else if (is(verb, "log")) {
        holdfast_log(HOLDFAST_INFO, rest);
    } else if (is(verb, "config")) {
        if (!holdfast_config(rest, heard)) *heard = HOLDFAST_TEXT("nothing");
    } else if (is(verb, "session")) {
        *heard = session_text();
    } else {
        return ask_user(verb, rest, heard);
    }
    return 1;
}

/* Finds the directive for a place and does it up to its last verb. */
static inline deed directive(const char *where, holdfast_text subject, holdfast_text arguments) {
    holdfast_text line, lines, heard = {0, 0};
    if (!directive_in(subject, where, &line)) {
        int told = holdfast_text_field(arguments, "do", &lines) && directive_in(lines, where, &line);
        if (!told) {
            uint32_t area[2];
            host_config_all(area);
            holdfast_text all = at_address(area[0], area[1]);
            told = holdfast_text_field(all, "do", &lines) && directive_in(lines, where, &line);
        }
        if (!told) return (deed){{0, 0}, {0, 0}};
    }
    for (;;) {
        holdfast_text stage = take(&line, " | "), verb = take(&stage, " "), answer = {0, 0};
        if (ask_host(verb, stage, &answer)) {
            heard = answer;
            if (line.length) continue;
            return (deed){{0, 0}, {0, 0}};
        }
        if (is(verb, "trap")) __builtin_trap();
        holdfast_builder text = {0};
        while (stage.length) {
            uint32_t before = stage.length;
            holdfast_text part = take(&stage, "%");
            holdfast_add(&text, part);
            if (part.length < before) holdfast_add(&text, heard);
        }
        return (deed){verb, holdfast_built(&text)};
    }
}

/* A failure in its own words, where the deed is one. */
static inline int failing(deed done, holdfast_answer *answer) {
    const char *kinds[] = {"invalid", "refused", "missing", "failed"};
    for (uint32_t kind = 0; kind < 4; kind++)
        if (is(done.verb, kinds[kind])) return *answer = (holdfast_answer){1, kind, 0, done.text}, 1;
    return 0;
}

#endif
