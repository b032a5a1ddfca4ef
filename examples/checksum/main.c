/* Checksums of a text: CRC-32, Adler-32, Fletcher-16. They are pure functions. */
#include "holdfast.h"

static uint32_t crc32(holdfast_text text) {
    uint32_t crc = ~0u;
    for (uint32_t i = 0; i < text.length; i++) {
        crc ^= (uint8_t)text.data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0xEDB88320u & (0u - (crc & 1u)));
    }
    return ~crc;
}

static uint32_t adler32(holdfast_text text) {
    uint32_t a = 1, b = 0;
    for (uint32_t i = 0; i < text.length; i++) {
        a = (a + (uint8_t)text.data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

static uint32_t fletcher16(holdfast_text text) {
    uint32_t a = 0, b = 0;
    for (uint32_t i = 0; i < text.length; i++) {
        a = (a + (uint8_t)text.data[i]) % 255;
        b = (b + a) % 255;
    }
    return b << 8 | a;
}

static holdfast_answer hex_of(holdfast_text arguments, uint32_t (*sum)(holdfast_text), uint32_t digits) {
    holdfast_text text;
    holdfast_builder built = {0};
    if (!holdfast_text_field(arguments, "text", &text)) return holdfast_invalid("`text` must be text");
    holdfast_add_hex(&built, sum(text), digits);
    return holdfast_plain(holdfast_built(&built));
}

static holdfast_answer call_crc32(holdfast_text arguments) { return hex_of(arguments, crc32, 8); }
static holdfast_answer call_adler32(holdfast_text arguments) { return hex_of(arguments, adler32, 8); }
static holdfast_answer call_fletcher16(holdfast_text arguments) { return hex_of(arguments, fletcher16, 4); }

#define SCHEMA \
    "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\",\"description\":\"The text; its UTF-8 is summed.\"}}," \
    "\"required\":[\"text\"],\"additionalProperties\":false}"

HOLDFAST_TOOLS({.name = "crc32",
                .description = "The CRC-32 of a text, as in zip and PNG, in 8 hexadecimal digits.",
                .input_schema = SCHEMA,
                .effects = HOLDFAST_PURE,
                .call = call_crc32},
               {.name = "adler32",
                .description = "The Adler-32 of a text, as in zlib, in 8 hexadecimal digits.",
                .input_schema = SCHEMA,
                .effects = HOLDFAST_PURE,
                .call = call_adler32},
               {.name = "fletcher16",
                .description = "The Fletcher-16 of a text in 4 hexadecimal digits.",
                .input_schema = SCHEMA,
                .effects = HOLDFAST_PURE,
                .call = call_fletcher16})
