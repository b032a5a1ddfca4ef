/* The courier in C. */
#include "holdfast.h"

static void add_all(holdfast_builder *to, const holdfast_text *parts, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) holdfast_add(to, parts[i]);
}

static holdfast_text joined(holdfast_text one, holdfast_text two) {
    holdfast_builder text = {0};
    const holdfast_text parts[] = {one, two};
    add_all(&text, parts, 2);
    return holdfast_built(&text);
}

static holdfast_answer deliver(holdfast_text arguments) {
    holdfast_text url, folder, token, note;
    holdfast_response response;
    const holdfast_entry *entries;
    uint32_t count;
    if (!holdfast_text_field(arguments, "url", &url) || !holdfast_text_field(arguments, "folder", &folder))
        return holdfast_invalid("name a url and a folder");
    if (!holdfast_secret(HOLDFAST_TEXT("TOKEN"), &token)) return holdfast_failed("there is no token");
    holdfast_header header = {HOLDFAST_TEXT("authorization"), joined(HOLDFAST_TEXT("Bearer "), token)};
    if (!holdfast_http("GET", url, &header, 1, (holdfast_text){0, 0}, &response))
        return (holdfast_answer){1, 3, 0, response.body};
    if (!holdfast_file_read(joined(folder, HOLDFAST_TEXT("/note.txt")), &note))
        return (holdfast_answer){1, 3, 0, note};
    if (!holdfast_file_write(HOLDFAST_TEXT("copy.txt"), note)) return holdfast_failed("it is not written");
    if (!holdfast_file_list(folder, &entries, &count)) return holdfast_failed("it is not listed");
    if (!holdfast_subscribe(HOLDFAST_TEXT("news.weather"))) return holdfast_failed("it is not subscribed");
    holdfast_builder text = {0};
    holdfast_add_number(&text, response.status);
    const holdfast_text parts[] = {HOLDFAST_TEXT(" "), response.body, HOLDFAST_TEXT(" | "), note, HOLDFAST_TEXT(" |")};
    add_all(&text, parts, 5);
    for (uint32_t i = 0; i < count; i++) {
        holdfast_add(&text, HOLDFAST_TEXT(" "));
        holdfast_add(&text, entries[i].name);
    }
    return holdfast_plain(holdfast_built(&text));
}

static holdfast_answer gate(holdfast_call call) {
    holdfast_text url = {0, 0}, web = HOLDFAST_TEXT("http");
    holdfast_text_field(call.arguments, "url", &url);
    int is_web = url.length >= web.length && holdfast_same((holdfast_text){url.data, web.length}, web);
    if (holdfast_same(call.tool, HOLDFAST_TEXT("deliver")) && !is_web) return holdfast_deny("it delivers from the web only");
    return holdfast_allow();
}

HOLDFAST_TOOLS({
    .name = "deliver",
    .description = "Fetches, reads, writes and subscribes.",
    .input_schema = "{\"type\":\"object\",\"properties\":{\"url\":{\"type\":\"string\",\"description\":\"What is "
                    "fetched.\"},\"folder\":{\"type\":\"string\",\"description\":\"The folder that is read.\"}},"
                    "\"required\":[\"url\",\"folder\"],\"additionalProperties\":false}",
    .effects = HOLDFAST_NETWORK,
    .call = deliver,
})
HOLDFAST_TOOL_GATE(gate)
