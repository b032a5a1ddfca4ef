/* What the program keeps and knows, for Holdfast extensions in C: agents, models and tools to call, conversations and projects,
 * truncated results, the tools of a session, and the setup of extensions. Include it where a file uses these functions; it includes
 * holdfast.h. Answers are JSON. A function that returns 0 was refused or has failed; where it gives a text, that says why.
 */
#ifndef HOLDFAST_RECORDS_H
#define HOLDFAST_RECORDS_H

#include "holdfast.h"

HF_IMPORT("secrets", "keep")
void hf_host_secrets_keep(const char *name, uint32_t length, const char *value, uint32_t value_length, uint32_t *area);
HF_IMPORT("agents", "list") void hf_host_agents_list(uint32_t *area);
HF_IMPORT("agents", "invoke-tool")
void hf_host_agents_invoke_tool(const char *tool, uint32_t length, const char *arguments, uint32_t arguments_length,
                                uint32_t *area);
HF_IMPORT("agents", "invoke-model")
void hf_host_agents_invoke_model(const char *prompt, uint32_t length, const char *instructions,
                                 uint32_t instructions_length, uint32_t some, const char *agent, uint32_t agent_length,
                                 uint32_t *area);
HF_IMPORT("prompts", "describe-agent")
void hf_host_prompts_describe_agent(uint32_t some, const char *agent, uint32_t length, uint32_t *area);
HF_IMPORT("conversations", "list-threads")
void hf_host_list_threads(uint32_t some_thread, const char *thread, uint32_t thread_length, uint32_t some_channel,
                          const char *channel, uint32_t channel_length, uint32_t some_project, const char *project,
                          uint32_t project_length, uint32_t archived, uint32_t *area);
HF_IMPORT("conversations", "update-thread")
void hf_host_update_thread(const char *thread, uint32_t length, const char *changes, uint32_t changes_length, uint32_t *area);
HF_IMPORT("conversations", "history") void hf_host_history(const char *thread, uint32_t length, uint32_t *area);
HF_IMPORT("conversations", "list-projects") void hf_host_list_projects(uint32_t *area);
HF_IMPORT("conversations", "update-project")
void hf_host_update_project(uint32_t some, const char *project, uint32_t length, const char *fields, uint32_t fields_length,
                            uint32_t *area);
HF_IMPORT("conversations", "remove-project")
void hf_host_remove_project(const char *project, uint32_t length, uint32_t *area);
HF_IMPORT("results", "read") void hf_host_results_read(uint64_t call, uint64_t offset, uint64_t limit, uint32_t *area);
HF_IMPORT("discovery", "find-tools")
void hf_host_find_tools(const char *query, uint32_t length, uint32_t some, uint32_t limit, uint32_t *area);
HF_IMPORT("discovery", "list-capabilities") void hf_host_list_capabilities(uint32_t *area);
HF_IMPORT("maintenance", "open") void hf_host_maintenance_open(uint32_t *area);
HF_IMPORT("maintenance", "show") void hf_host_maintenance_show(const char *extension, uint32_t length, uint32_t *area);
HF_IMPORT("maintenance", "apply")
void hf_host_maintenance_apply(const char *extension, uint32_t length, const char *name, uint32_t name_length,
                               const char *value, uint32_t value_length, uint32_t *area);
HF_IMPORT("maintenance", "doctor")
void hf_host_maintenance_doctor(uint32_t some, const char *extension, uint32_t length, uint32_t *area);

/* Stores a secret of the extension; an empty value removes it. */
static inline int holdfast_secret_keep(holdfast_text name, holdfast_text value) {
    uint32_t area[4];
    hf_host_secrets_keep(name.data, name.length, value.data, value.length, area);
    return !(area[0] & 255);
}

/* The agents that can be asked. */
static inline int holdfast_agents(holdfast_text *json) {
    uint32_t area[4];
    hf_host_agents_list(area);
    return hf_heard(area, json);
}

/* Runs a tool that the extension's agent has, with arguments as JSON: its result, as text or JSON. */
static inline int holdfast_invoke_tool(holdfast_text tool, holdfast_text arguments, holdfast_text *result) {
    uint32_t area[4];
    hf_host_agents_invoke_tool(tool.data, tool.length, arguments.data, arguments.length, area);
    *result = (holdfast_text){(const char *)(size_t)area[2], area[3]};
    return !(area[0] & 255);
}

/* Asks the model that an agent uses; an agent without data is the extension's own. */
static inline int holdfast_invoke_model(holdfast_text prompt, holdfast_text instructions, holdfast_text agent,
                                        holdfast_text *text) {
    uint32_t area[4];
    hf_host_agents_invoke_model(prompt.data, prompt.length, instructions.data, instructions.length, agent.data != 0,
                                agent.data, agent.length, area);
    return hf_heard(area, text);
}

/* An agent; one without data is the extension's own. */
static inline int holdfast_describe_agent(holdfast_text agent, holdfast_text *json) {
    uint32_t area[4];
    hf_host_prompts_describe_agent(agent.data != 0, agent.data, agent.length, area);
    return hf_heard(area, json);
}

/* Conversations; a thread, channel or project without data does not matter. */
static inline int holdfast_list_threads(holdfast_text thread, holdfast_text channel, holdfast_text project, int archived,
                                        holdfast_text *json) {
    uint32_t area[4];
    hf_host_list_threads(thread.data != 0, thread.data, thread.length, channel.data != 0, channel.data, channel.length,
                         project.data != 0, project.data, project.length, archived != 0, area);
    return hf_heard(area, json);
}

/* Changes a conversation; the changes are a JSON object. */
static inline int holdfast_update_thread(holdfast_text thread, holdfast_text changes, holdfast_text *json) {
    uint32_t area[4];
    hf_host_update_thread(thread.data, thread.length, changes.data, changes.length, area);
    return hf_heard(area, json);
}

static inline int holdfast_history(holdfast_text thread, holdfast_text *json) {
    uint32_t area[4];
    hf_host_history(thread.data, thread.length, area);
    return hf_heard(area, json);
}

static inline int holdfast_list_projects(holdfast_text *json) {
    uint32_t area[4];
    hf_host_list_projects(area);
    return hf_heard(area, json);
}

/* Changes a project, or creates one if it has no data; the fields are a JSON object. */
static inline int holdfast_update_project(holdfast_text project, holdfast_text fields, holdfast_text *json) {
    uint32_t area[4];
    hf_host_update_project(project.data != 0, project.data, project.length, fields.data, fields.length, area);
    return hf_heard(area, json);
}

static inline int holdfast_remove_project(holdfast_text project) {
    uint32_t area[4];
    hf_host_remove_project(project.data, project.length, area);
    return !(area[0] & 255);
}

/* Reads on in a result that this extension has truncated; the call is the id that a hook was given. */
static inline int holdfast_read_result(uint64_t call, uint64_t offset, uint64_t limit, holdfast_text *json) {
    uint32_t area[4];
    hf_host_results_read(call, offset, limit, area);
    return hf_heard(area, json);
}

/* Searches the tools of this session; a limit of 0 is the host's own. */
static inline int holdfast_find_tools(holdfast_text query, uint32_t limit, holdfast_text *json) {
    uint32_t area[4];
    hf_host_find_tools(query.data, query.length, limit != 0, limit, area);
    return hf_heard(area, json);
}

static inline int holdfast_list_capabilities(holdfast_text *json) {
    uint32_t area[4];
    hf_host_list_capabilities(area);
    return hf_heard(area, json);
}

/* The extensions that are not set up. */
static inline int holdfast_setup_open(holdfast_text *json) {
    uint32_t area[4];
    hf_host_maintenance_open(area);
    return hf_heard(area, json);
}

static inline int holdfast_setup_show(holdfast_text extension, holdfast_text *json) {
    uint32_t area[4];
    hf_host_maintenance_show(extension.data, extension.length, area);
    return hf_heard(area, json);
}

/* Sets a parameter of an extension; the value is JSON. */
static inline int holdfast_setup_apply(holdfast_text extension, holdfast_text name, holdfast_text value, holdfast_text *json) {
    uint32_t area[4];
    hf_host_maintenance_apply(extension.data, extension.length, name.data, name.length, value.data, value.length, area);
    return hf_heard(area, json);
}

/* What is wrong with an extension; one without data is all of them. */
static inline int holdfast_doctor(holdfast_text extension, holdfast_text *json) {
    uint32_t area[4];
    hf_host_maintenance_doctor(extension.data != 0, extension.data, extension.length, area);
    return hf_heard(area, json);
}

#endif
