/* A native plugin in C: one tool, which asks the operating system about this machine.
 *
 *     cc -shared -fPIC -O2 -I ../../sdk/c -o system-info.so plugin.c */

#include <sys/utsname.h>
#include <unistd.h>

#include "holdfast_plugin.h"

static holdfast_buffer describe(const uint8_t *data, size_t length) {
    return holdfast_result(holdfast_json_of(data, length),
                           "{\"protocol\":\"0.1\",\"tools\":[{\"name\":\"system_info\",\"effects\":\"read\","
                           "\"description\":\"The operating system, the architecture and the number of processors.\"}]}");
}

static holdfast_buffer system_info(holdfast_json request) {
    struct utsname system;
    holdfast_writer to = {0};
    char processors[24];
    if (uname(&system) != 0) return holdfast_error(request, 1, "the system does not say what it is");
    snprintf(processors, sizeof processors, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    holdfast_putf(&to, "{\"system\":%,\"architecture\":%,\"processors\":$}", system.sysname, system.machine, processors);
    holdfast_buffer answer = holdfast_result(request, to.data);
    free(to.data);
    return answer;
}

static holdfast_buffer call(const holdfast_host *host, const uint8_t *data, size_t length) {
    holdfast_json request = holdfast_json_of(data, length), method = holdfast_json_get(request, "method");
    holdfast_buffer nothing = {NULL, 0};
    (void)host; /* This tool needs nothing from Holdfast. */
    if (holdfast_json_is(method, "\"cancel\"")) return nothing;
    if (!holdfast_json_is(method, "\"tool\"")) return holdfast_error(request, 1, "there is only a tool");
    return system_info(request);
}

static void release(holdfast_buffer answer) { free(answer.data); }

const holdfast_plugin *holdfast_plugin_v1(void) {
    static const holdfast_plugin table = {HOLDFAST_PLUGIN_ABI, sizeof(holdfast_plugin), describe, call, release};
    return &table;
}
