/* A native plugin for Holdfast in C: a dynamic library that Holdfast loads into its own process under the profile `trusted`.
 *
 * The library exports one function, holdfast_plugin_v1, which returns a table. The messages are those of the process protocol
 * (docs/reference/process.md), one JSON text in a buffer: `describe` answers `hello`, `call` answers every other request and takes
 * the notifications `cancel` and `update`, and `send` of the host takes `ask`, `log` and `progress`. docs/plugins.md has the rules.
 *
 *     cc -shared -fPIC -O2 -I sdk/c -o libshout.so shout.c
 *
 * The second half of this file is for reading and writing JSON. A plugin with a JSON library of its own does not need it:
 * define HOLDFAST_PLUGIN_NO_JSON. */

#ifndef HOLDFAST_PLUGIN_H
#define HOLDFAST_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#define HOLDFAST_PLUGIN_ABI 1u

/* Bytes. Who has allocated them frees them: the plugin by its `free`, the host by its own. */
typedef struct holdfast_buffer {
    uint8_t *data;
    size_t length;
} holdfast_buffer;

/* What a plugin may call in the middle of a call, from any thread, until that call returns. */
typedef struct holdfast_host {
    const void *context;
    /* Sends one message. The answer to a request is a response, the answer to a notification is empty. */
    holdfast_buffer (*send)(const void *context, const uint8_t *message, size_t length);
    /* Frees an answer. */
    void (*free)(const void *context, holdfast_buffer answer);
} holdfast_host;

typedef struct holdfast_plugin {
    uint32_t abi;  /* HOLDFAST_PLUGIN_ABI */
    uint32_t size; /* sizeof(holdfast_plugin) */
    /* Answers `hello` with a response. Called at every load, before any call. */
    holdfast_buffer (*describe)(const uint8_t *hello, size_t length);
    /* Answers a request with a response, and a notification with an empty buffer. Called from several threads at once. */
    holdfast_buffer (*call)(const holdfast_host *host, const uint8_t *request, size_t length);
    /* Frees what the two have returned. */
    void (*free)(holdfast_buffer answer);
} holdfast_plugin;

#if defined(__GNUC__)
#define HOLDFAST_EXPORT __attribute__((visibility("default")))
#else
#define HOLDFAST_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif
HOLDFAST_EXPORT const holdfast_plugin *holdfast_plugin_v1(void);
#ifdef __cplusplus
}
#endif

#ifndef HOLDFAST_PLUGIN_NO_JSON

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A JSON value where it stands in a message; without a start it is missing. */
typedef struct holdfast_json {
    const char *start;
    size_t length;
} holdfast_json;

static inline const char *holdfast_json_space(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t' || *at == ',' || *at == ':')) at++;
    return at;
}

/* The end of the value that begins here. */
static inline const char *holdfast_json_skip(const char *at, const char *end) {
    int depth = 0;
    do {
        at = holdfast_json_space(at, end);
        if (at >= end) return end;
        if (*at == '"') {
            for (at++; at < end && *at != '"'; at++)
                if (*at == '\\') at++;
            at++;
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            depth--;
            at++;
        } else {
            while (at < end && !strchr(",:]} \n\r\t", *at)) at++;
        }
    } while (depth > 0);
    return at < end ? at : end;
}

static inline holdfast_json holdfast_json_of(const uint8_t *data, size_t length) {
    holdfast_json all = {(const char *)data, length};
    return all;
}

static inline holdfast_json holdfast_json_at(const char *at, const char *end) {
    at = holdfast_json_space(at, end);
    holdfast_json found = {at, (size_t)(holdfast_json_skip(at, end) - at)};
    return found;
}

/* The member of an object, or a missing value. */
static inline holdfast_json holdfast_json_get(holdfast_json object, const char *name) {
    holdfast_json missing = {NULL, 0};
    const char *at = object.start, *end = at ? at + object.length : NULL;
    size_t length = strlen(name);
    if (!at) return missing;
    at = holdfast_json_space(at, end);
    if (at >= end || *at != '{') return missing;
    for (at = holdfast_json_space(at + 1, end); at < end && *at == '"'; at = holdfast_json_space(at, end)) {
        holdfast_json key = holdfast_json_at(at, end), value = holdfast_json_at(key.start + key.length, end);
        if (key.length == length + 2 && memcmp(key.start + 1, name, length) == 0) return value;
        at = value.start + value.length;
    }
    return missing;
}

static inline int holdfast_json_is(holdfast_json value, const char *text) {
    return value.start && value.length == strlen(text) && memcmp(value.start, text, value.length) == 0;
}

static inline int holdfast_json_is_text(holdfast_json value) {
    return value.start && value.length >= 2 && *value.start == '"';
}

static inline unsigned holdfast_json_hex(const char *at) {
    char digits[5] = {at[0], at[1], at[2], at[3], 0};
    return (unsigned)strtoul(digits, NULL, 16);
}

/* A text without its quotes and escapes, or any other value as it stands. The caller frees it. A missing value is an empty text. */
static inline char *holdfast_json_text(holdfast_json value) {
    char *text = (char *)malloc(value.length + 1), *to = text;
    if (!text) abort();
    if (!holdfast_json_is_text(value)) {
        if (value.start) memcpy(text, value.start, value.length);
        text[value.start ? value.length : 0] = 0;
        return text;
    }
    const char *at = value.start + 1, *end = value.start + value.length - 1;
    while (at < end) {
        if (*at != '\\') {
            *to++ = *at++;
            continue;
        }
        char kind = at[1];
        at += 2;
        if (kind != 'u') {
            *to++ = kind == 'n' ? '\n' : kind == 't' ? '\t' : kind == 'r' ? '\r' : kind == 'b' ? '\b' : kind == 'f' ? '\f' : kind;
            continue;
        }
        unsigned code = end - at >= 4 ? holdfast_json_hex(at) : 0xFFFD;
        at += 4;
        if (code >= 0xD800 && code < 0xDC00 && end - at >= 6) {
            code = 0x10000 + ((code - 0xD800) << 10) + (holdfast_json_hex(at + 2) - 0xDC00);
            at += 6;
        }
        if (code < 0x80) {
            *to++ = (char)code;
        } else if (code < 0x800) {
            *to++ = (char)(0xC0 | code >> 6);
            *to++ = (char)(0x80 | (code & 0x3F));
        } else if (code < 0x10000) {
            *to++ = (char)(0xE0 | code >> 12);
            *to++ = (char)(0x80 | (code >> 6 & 0x3F));
            *to++ = (char)(0x80 | (code & 0x3F));
        } else {
            *to++ = (char)(0xF0 | code >> 18);
            *to++ = (char)(0x80 | (code >> 12 & 0x3F));
            *to++ = (char)(0x80 | (code >> 6 & 0x3F));
            *to++ = (char)(0x80 | (code & 0x3F));
        }
    }
    *to = 0;
    return text;
}

/* A JSON text that grows. Begin with all zeros. */
typedef struct holdfast_writer {
    char *data;
    size_t length, room;
} holdfast_writer;

static inline void holdfast_put(holdfast_writer *to, const char *bytes, size_t length) {
    if (to->length + length + 1 > to->room) {
        to->room = (to->length + length + 1) * 2;
        to->data = (char *)realloc(to->data, to->room);
        if (!to->data) abort();
    }
    memcpy(to->data + to->length, bytes, length);
    to->length += length;
    to->data[to->length] = 0;
}

/* Writes a text as it stands. */
static inline void holdfast_put_raw(holdfast_writer *to, const char *text) { holdfast_put(to, text, strlen(text)); }

/* Writes a text with quotes and escapes. */
static inline void holdfast_put_text(holdfast_writer *to, const char *text) {
    holdfast_put(to, "\"", 1);
    for (; *text; text++) {
        char escaped[8];
        if (*text == '"' || *text == '\\') {
            escaped[0] = '\\';
            escaped[1] = *text;
            holdfast_put(to, escaped, 2);
        } else if ((unsigned char)*text < 0x20) {
            snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)(unsigned char)*text);
            holdfast_put(to, escaped, 6);
        } else {
            holdfast_put(to, text, 1);
        }
    }
    holdfast_put(to, "\"", 1);
}

/* Writes pieces in turn: `%` in the format is the next argument as a text with quotes, `$` as it stands. */
static inline void holdfast_putf(holdfast_writer *to, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    for (; *format; format++) {
        if (*format == '%') holdfast_put_text(to, va_arg(arguments, const char *));
        else if (*format == '$') holdfast_put_raw(to, va_arg(arguments, const char *));
        else holdfast_put(to, format, 1);
    }
    va_end(arguments);
}

static inline holdfast_buffer holdfast_taken(holdfast_writer *from) {
    holdfast_buffer buffer = {(uint8_t *)from->data, from->length};
    return buffer;
}

/* The answer to a request: a result, which is JSON. */
static inline holdfast_buffer holdfast_result(holdfast_json request, const char *result) {
    holdfast_writer to = {0};
    char *id = holdfast_json_text(holdfast_json_get(request, "id"));
    holdfast_putf(&to, "{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":$}", id, result);
    free(id);
    return holdfast_taken(&to);
}

/* The answer to a request: a failure. The code is -32602 for invalid arguments, otherwise 1. */
static inline holdfast_buffer holdfast_error(holdfast_json request, int code, const char *message) {
    holdfast_writer to = {0};
    char *id = holdfast_json_text(holdfast_json_get(request, "id")), number[16];
    snprintf(number, sizeof number, "%d", code);
    holdfast_putf(&to, "{\"jsonrpc\":\"2.0\",\"id\":$,\"error\":{\"code\":$,\"message\":%}}", id, number, message);
    free(id);
    return holdfast_taken(&to);
}

/* Asks the host in the middle of a call. The answer is a response, which the caller frees. */
static inline char *holdfast_ask(const holdfast_host *host, holdfast_json request, const char *name, const char *arguments) {
    holdfast_writer to = {0};
    char *call = holdfast_json_text(holdfast_json_get(request, "id"));
    holdfast_putf(&to, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ask\",\"params\":{\"call\":$,\"name\":%,\"arguments\":$}}", call,
                  name, arguments);
    holdfast_buffer answer = host->send(host->context, (const uint8_t *)to.data, to.length);
    holdfast_json copied = {(const char *)answer.data, answer.length};
    free(to.data);
    free(call);
    char *text = holdfast_json_text(copied);
    host->free(host->context, answer);
    return text;
}

/* Writes a line to the log. */
static inline void holdfast_log(const holdfast_host *host, const char *text) {
    holdfast_writer to = {0};
    holdfast_putf(&to, "{\"jsonrpc\":\"2.0\",\"method\":\"log\",\"params\":{\"text\":%}}", text);
    host->free(host->context, host->send(host->context, (const uint8_t *)to.data, to.length));
    free(to.data);
}

#endif
#endif
