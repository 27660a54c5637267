/* Any bytes: the checker must judge them, and everything that takes checked text must then agree with it. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cJSON.h>

#include "json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A string decodes to the same in both ways, and to the same again after it was written anew. */
static void check_string(struct span value)
{
    struct buf text BUF_AUTO = BUF_INIT, written BUF_AUTO = BUF_INIT, again BUF_AUTO = BUF_INIT;
    bool is_string = json_string_text(value, &text);
    assert(is_string == (json_kind(value) == JSON_STRING));
    if (!is_string)
        return;
    cJSON *node = json_parse(value);
    size_t n;
    char *s = json_take_string(node, &n);
    assert(s && n == text.len && memcmp(s, buf_str(&text), n) == 0);
    free(s);
    cJSON_Delete(node);
    json_put_string(&written, buf_str(&text), text.len);
    assert(json_check(span_of(&written), NULL) == 0);
    assert(json_string_text(span_of(&written), &again));
    assert(again.len == text.len && memcmp(buf_str(&again), buf_str(&text), text.len) == 0);
    if (!memchr(buf_str(&text), '\0', text.len))
        assert(json_string_is(value, buf_str(&text)));
}

/* Every entry of a container is valid by itself, and cJSON finds as many. */
static void check_entries(struct span value)
{
    struct span key = {NULL, 0}, entry;
    size_t n = 0, at = 0;
    bool object = json_kind(value) == JSON_OBJECT;
    if (!object && json_kind(value) != JSON_ARRAY)
        return;
    while (object ? json_next_member(value, &at, &key, &entry) : json_element(value, &at, &entry)) {
        assert(json_check(entry, NULL) == 0);
        assert(!object || json_check(key, NULL) == 0);
        check_string(entry);
        if (object)
            check_string(key);
        n++;
    }
    cJSON *node = json_parse(value);
    assert(!node || n == (size_t)cJSON_GetArraySize(node));
    cJSON_Delete(node);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};
    struct err err;
    if (json_check(text, &err) < 0) {
        assert(err.code == ERR_PARSE && err.msg[0]);
        return 0;
    }
    cJSON *node = json_parse(text);
    assert(node || size > JSON_NODES_MAX);
    if (json_number(node))
        assert(memmem(text.s, text.n, json_number(node), strlen(json_number(node))));
    cJSON_Delete(node);
    struct buf compact BUF_AUTO = BUF_INIT, again BUF_AUTO = BUF_INIT;
    json_compact(&compact, text);
    assert(compact.len <= size && json_check(span_of(&compact), NULL) == 0);
    json_compact(&again, span_of(&compact));
    assert(again.len == compact.len && memcmp(again.data, compact.data, again.len) == 0);
    check_string(span_of(&compact));
    check_entries(span_of(&compact));
    return 0;
}
