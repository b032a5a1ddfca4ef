/* Stopwatches, as a program in plain C: reads one request per line, writes one response per line, and needs only libc. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WATCHES 64
#define NAME 64

static struct { char name[NAME]; struct timespec began; } watches[WATCHES];
static int running;

static const char *blank(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') at++;
    return at;
}

/* The end of the JSON value that begins here. The host sends only valid JSON. */
static const char *after(const char *at) {
    int depth = 0;
    for (at = blank(at); *at; at++) {
        if (*at == '"') {
            for (at++; *at && *at != '"'; at++)
                if (*at == '\\' && at[1]) at++;
            if (depth == 0) return at + 1;
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            if (depth == 0) return at;
            if (--depth == 0) return at + 1;
        } else if (*at == ',' && depth == 0) {
            return at;
        }
    }
    return at;
}

/* A member of an object, or NULL. */
static const char *member(const char *object, const char *name) {
    if (!object) return NULL;
    const char *at = blank(object);
    if (*at++ != '{') return NULL;
    size_t length = strlen(name);
    while (*(at = blank(at)) == '"') {
        const char *key = at + 1, *end = after(at) - 1, *value = blank(after(at)) + 1;
        if ((size_t)(end - key) == length && memcmp(key, name, length) == 0) return blank(value);
        at = blank(after(value));
        if (*at == ',') at++;
    }
    return NULL;
}

static int is(const char *value, const char *text) {
    size_t length = strlen(text);
    return value && *value == '"' && strncmp(value + 1, text, length) == 0 && value[length + 1] == '"';
}

static void reply(const char *id, const char *what, const char *json) {
    printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"%s\":%s}\n", (int)(after(id) - id), id, what, json);
    fflush(stdout);
}

static void refuse(const char *id, const char *why) {
    char error[256];
    snprintf(error, sizeof error, "{\"code\":-32602,\"message\":\"%s\"}", why);
    reply(id, "error", error);
}

static void tool(const char *id, const char *params) {
    const char *given = member(member(params, "arguments"), "name");
    size_t length = given && *given == '"' ? (size_t)(after(given) - given - 2) : 0;
    if (length == 0 || length >= NAME) return refuse(id, "a stopwatch has a name of 1 to 63 bytes");
    char name[NAME] = "";
    memcpy(name, given + 1, length);

    int watch = 0;
    while (watch < running && strcmp(watches[watch].name, name) != 0) watch++;
    if (is(member(params, "tool"), "stopwatch_start")) {
        if (watch == WATCHES) return refuse(id, "all stopwatches are in use");
        if (watch == running) running++;
        strcpy(watches[watch].name, name);
        clock_gettime(CLOCK_MONOTONIC, &watches[watch].began);
        return reply(id, "result", "\"started\"");
    }
    if (watch == running) return refuse(id, "there is no such stopwatch; start it first");
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    char seconds[64];
    double passed = (double)(now.tv_sec - watches[watch].began.tv_sec)
                  + (double)(now.tv_nsec - watches[watch].began.tv_nsec) / 1e9;
    snprintf(seconds, sizeof seconds, "{\"seconds\":%.3f}", passed);
    reply(id, "result", seconds);
}

#define SCHEMA "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":1}}," \
               "\"required\":[\"name\"],\"additionalProperties\":false}"

/* The answer to `hello`. With `start` and `stop` the program keeps running when it is idle for a minute. */
static const char *welcome =
    "{\"protocol\":\"0.1\",\"functions\":{\"lifecycle\":[\"start\",\"stop\"]},\"tools\":["
    "{\"name\":\"stopwatch_start\",\"description\":\"Starts a stopwatch.\",\"effects\":\"write\",\"input_schema\":" SCHEMA "},"
    "{\"name\":\"stopwatch_read\",\"description\":\"Seconds since a stopwatch was started.\",\"effects\":\"read\",\"input_schema\":" SCHEMA "}]}";

int main(void) {
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        const char *id = member(line, "id"), *method = member(line, "method");
        if (!id) continue; /* A notification: no call here takes long enough to be cancelled. */
        if (is(method, "hello")) reply(id, "result", welcome);
        else if (is(method, "tool")) tool(id, member(line, "params"));
        else reply(id, "result", "null");
    }
    free(line);
    return 0;
}
