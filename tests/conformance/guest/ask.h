/* Makes any host call by its name, with its arguments as JSON: what other lanes do with the name alone. Functions for which the header of
 * the SDK has none are declared here. With UNGRANTED the component imports only what every extension may. */
#ifndef ASK_H
#define ASK_H

#include "holdfast.h"
#include "holdfast_records.h"

HF_IMPORT("timers", "next-due")
void host_timers_next_due(const char *when, uint32_t length, uint32_t some, const char *zone, uint32_t zone_length,
                          uint64_t *area);
HF_IMPORT("timers", "wait-until") void host_timers_wait_until(uint64_t moment, uint64_t *area);
HF_IMPORT("files", "stat") void host_files_stat(const char *path, uint32_t length, uint64_t *area);
HF_IMPORT("extensions", "call")
void host_extensions_call(const char *extension, uint32_t length, const char *method, uint32_t method_length,
                          const char *arguments, uint32_t arguments_length, uint32_t *area);
HF_IMPORT("services", "get")
void host_services_get(const char *key, uint32_t length, const char *arguments, uint32_t arguments_length, uint32_t *area);
HF_IMPORT("services", "call")
void host_services_call(const char *key, uint32_t length, const char *method, uint32_t method_length,
                        const char *arguments, uint32_t arguments_length, uint32_t *area);
#define STARTS(function)                                                                                              \
    HF_IMPORT("agents", #function)                                                                                    \
    void host_agents_##function(uint32_t some, const char *agent, uint32_t length, const char *task,                  \
                                uint32_t task_length, uint32_t some_channel, const char *channel,                     \
                                uint32_t channel_length, uint32_t some_user, const char *user, uint32_t user_length,  \
                                uint32_t some_correlation, const char *correlation, uint32_t correlation_length,      \
                                uint32_t *area);
STARTS(task)
STARTS(background)
HF_IMPORT("channels", "list") void host_channels_list(uint32_t *area);

static inline int asks_for(holdfast_text name, const char *call) { return holdfast_same(name, holdfast_from(call)); }

/* A field that is a text; without data where it is missing or null. */
static inline holdfast_text text_at(holdfast_text object, const char *name) {
    holdfast_text found = {0, 0};
    holdfast_text_field(object, name, &found);
    return found;
}

/* A field as JSON. */
static inline holdfast_text json_at(holdfast_text object, const char *name) {
    holdfast_text found = {0, 0};
    holdfast_field(object, name, &found);
    return found;
}

static inline uint64_t number_at(holdfast_text object, const char *name) {
    int64_t found = 0;
    holdfast_number_field(object, name, &found);
    return (uint64_t)found;
}

/* Arguments that are a text alone. */
static inline holdfast_text alone(holdfast_text quoted) {
    holdfast_builder object = {0};
    holdfast_add(&object, HOLDFAST_TEXT("{\"it\":"));
    holdfast_add(&object, quoted);
    holdfast_add(&object, HOLDFAST_TEXT("}"));
    return text_at(holdfast_built(&object), "it");
}

#define PASSED(text) (text).data, (text).length
#define OPTIONAL(text) (text).data != 0, (text).data, (text).length

/* Makes a call that needs no grant. -1 if it is none. */
static inline int ask_freely(holdfast_text name, holdfast_text given) {
    holdfast_text heard, path = text_at(given, "path");
    uint64_t area[8];
    const holdfast_entry *entries;
    uint32_t count;
    if (asks_for(name, "clock")) return holdfast_now(), 1;
    if (asks_for(name, "random")) return holdfast_random((uint32_t)number_at(given, "bytes")), 1;
    if (asks_for(name, "state.get")) return holdfast_state_get(text_at(given, "key"), &heard) >= 0;
    if (asks_for(name, "state.set")) return holdfast_state_set(text_at(given, "key"), json_at(given, "value"));
    if (asks_for(name, "inject")) return holdfast_inject(text_at(given, "text"));
    if (asks_for(name, "schedule.next")) {
        holdfast_text when = text_at(given, "when"), zone = text_at(given, "timezone");
        return host_timers_next_due(PASSED(when), OPTIONAL(zone), area), !(area[0] & 255);
    }
    if (asks_for(name, "schedule.wait")) return host_timers_wait_until(number_at(given, "until"), area), !(area[0] & 255);
    if (asks_for(name, "secret.reference")) return holdfast_secret(alone(given), &heard);
    if (asks_for(name, "secret.get")) return holdfast_secret_value(alone(given), &heard);
    if (asks_for(name, "secret.keep")) return holdfast_secret_keep(text_at(given, "name"), text_at(given, "value"));
    if (asks_for(name, "file.read")) return holdfast_file_read(path, &heard);
    if (asks_for(name, "file.list")) return holdfast_file_list(path, &entries, &count);
    if (asks_for(name, "file.stat")) return host_files_stat(PASSED(path), area), !(area[0] & 255);
    if (asks_for(name, "file.write")) return holdfast_file_write(path, text_at(given, "content"));
    if (asks_for(name, "file.remove")) return holdfast_file_remove(path);
    if (asks_for(name, "file.make_folder")) return holdfast_make_folder(path);
    return -1;
}

#ifdef UNGRANTED
static inline int ask(holdfast_text name, holdfast_text given) { return ask_freely(name, given); }
#else
HF_IMPORT("ui", "confirm") void host_ui_confirm(const char *prompt, uint32_t length, uint32_t *area);

static inline int ask_agents(holdfast_text name, holdfast_text given) {
    holdfast_text heard, agent = text_at(given, "agent"), task = text_at(given, "task");
    holdfast_text channel = text_at(given, "channel"), user = text_at(given, "user");
    holdfast_text correlation = text_at(given, "correlation");
    uint32_t area[4];
    if (asks_for(name, "agent.task")) {
        host_agents_task(OPTIONAL(agent), PASSED(task), OPTIONAL(channel), OPTIONAL(user), OPTIONAL(correlation), area);
        return !(area[0] & 255);
    }
    if (asks_for(name, "agent.background")) {
        host_agents_background(OPTIONAL(agent), PASSED(task), OPTIONAL(channel), OPTIONAL(user), OPTIONAL(correlation),
                               area);
        return !(area[0] & 255);
    }
    if (asks_for(name, "agent.invoke")) return holdfast_invoke(agent, task, &heard);
    if (asks_for(name, "agent.list")) return holdfast_agents(&heard);
    if (asks_for(name, "agent.describe")) return holdfast_describe_agent(agent, &heard);
    if (asks_for(name, "tool.invoke"))
        return holdfast_invoke_tool(text_at(given, "tool"), json_at(given, "arguments"), &heard);
    if (asks_for(name, "model.invoke"))
        return holdfast_invoke_model(text_at(given, "prompt"), text_at(given, "instructions"), agent, &heard);
    return -1;
}

static inline int ask_records(holdfast_text name, holdfast_text given) {
    holdfast_text heard;
    if (asks_for(name, "thread.list"))
        return holdfast_list_threads(text_at(given, "thread"), text_at(given, "channel"), text_at(given, "project"),
                                     asks_for(json_at(given, "archived"), "true"), &heard);
    if (asks_for(name, "thread.update")) {
        holdfast_builder changes = {0};
        holdfast_add(&changes, HOLDFAST_TEXT("{\"title\":"));
        holdfast_add(&changes, json_at(given, "title"));
        holdfast_add(&changes, HOLDFAST_TEXT("}"));
        return holdfast_update_thread(text_at(given, "thread"), holdfast_built(&changes), &heard);
    }
    if (asks_for(name, "thread.history")) return holdfast_history(alone(given), &heard);
    if (asks_for(name, "project.list")) return holdfast_list_projects(&heard);
    if (asks_for(name, "project.update"))
        return holdfast_update_project(text_at(given, "project"), json_at(given, "fields"), &heard);
    if (asks_for(name, "project.remove")) return holdfast_remove_project(alone(given));
    /* The call that the arguments name is the first one of the turn. */
    if (asks_for(name, "result.read"))
        return holdfast_read_result(1ull << 32 | 1, number_at(given, "offset"), number_at(given, "limit"), &heard);
    if (asks_for(name, "tools.find"))
        return holdfast_find_tools(text_at(given, "query"), (uint32_t)number_at(given, "limit"), &heard);
    if (asks_for(name, "capabilities.list")) return holdfast_list_capabilities(&heard);
    if (asks_for(name, "setup.open")) return holdfast_setup_open(&heard);
    if (asks_for(name, "setup.show")) return holdfast_setup_show(alone(given), &heard);
    if (asks_for(name, "setup.apply"))
        return holdfast_setup_apply(text_at(given, "extension"), text_at(given, "name"), json_at(given, "value"), &heard);
    if (asks_for(name, "extension.doctor")) return holdfast_doctor(text_at(given, "extension"), &heard);
    return -1;
}

static inline int ask_others(holdfast_text name, holdfast_text given) {
    holdfast_text heard, key = text_at(given, "key"), method = text_at(given, "method");
    holdfast_text arguments = json_at(given, "arguments"), topic = text_at(given, "topic");
    holdfast_response response;
    uint32_t area[8];
    if (asks_for(name, "ui")) {
        holdfast_text prompt = text_at(json_at(given, "confirm"), "prompt");
        return host_ui_confirm(PASSED(prompt), area), !(area[0] & 255);
    }
    if (asks_for(name, "api.call")) {
        holdfast_text extension = text_at(given, "extension");
        return host_extensions_call(PASSED(extension), PASSED(method), PASSED(arguments), area), !(area[0] & 255);
    }
    if (asks_for(name, "service.get")) return host_services_get(PASSED(key), PASSED(arguments), area), !(area[0] & 255);
    if (asks_for(name, "service.call"))
        return host_services_call(PASSED(key), PASSED(method), PASSED(arguments), area), !(area[0] & 255);
    if (asks_for(name, "event.publish")) return holdfast_publish(topic, json_at(given, "payload"), key);
    if (asks_for(name, "event.subscribe")) return holdfast_subscribe(topic);
    if (asks_for(name, "event.unsubscribe")) return holdfast_unsubscribe(topic);
    if (asks_for(name, "user.notify"))
        return holdfast_notify(text_at(given, "text"), text_at(given, "channel"), text_at(given, "user"), &heard);
    if (asks_for(name, "channel.list")) return host_channels_list(area), !(area[0] & 255);
    if (asks_for(name, "context.enrich"))
        return holdfast_enrich(text_at(given, "prompt"), text_at(given, "agent"), &heard);
    if (asks_for(name, "http.request"))
        return holdfast_http("GET", text_at(given, "url"), 0, 0, (holdfast_text){0, 0}, &response);
    if (asks_for(name, "environment.get")) return holdfast_variable(alone(given), &heard) >= 0;
    if (asks_for(name, "system.restart")) return holdfast_restart(text_at(given, "reason"));
    return -1;
}

static inline int ask(holdfast_text name, holdfast_text given) {
    int (*const groups[])(holdfast_text, holdfast_text) = {ask_freely, ask_agents, ask_records, ask_others};
    for (uint32_t group = 0; group < sizeof groups / sizeof *groups; group++) {
        int is_served = groups[group](name, given);
        if (is_served >= 0) return is_served;
    }
    return -1;
}
#endif

#endif
