#include "job_text.h"

#include "json.h"
#include "utf8.h"

#define JSON_ANSWER_MAX (2u << 20)
#define STEP 65536

size_t text_add(struct buf *text, const char *bytes, size_t n, bool latin1, bool final)
{
    buf_reserve(text, n);
    if (!latin1)
        return utf8_clean(text, bytes, n, final);
    for (size_t i = 0; i < n; i++)
        utf8_put(text, (unsigned char)bytes[i]);
    return n;
}

size_t text_to_latin1(char *text, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0xC2 && i + 1 < n)
            c = (unsigned char)((c & 3) << 6 | ((unsigned char)text[++i] & 0x3F));
        text[len++] = (char)c;
    }
    return len;
}

size_t text_chars(const char *text, size_t n)
{
    size_t chars = 0;
    for (size_t i = 0; i < n; i++)
        chars += ((unsigned char)text[i] & 0xC0) != 0x80;
    return chars;
}

struct text_room text_room(const struct buf *text)
{
    if (text->len >= JOB_UNACKED_MAX || json_string_len(text->data, text->len) >= JOB_UNACKED_MAX)
        return (struct text_room){0};
    return (struct text_room){JOB_ANSWER_MAX, JSON_ANSWER_MAX};
}

size_t text_step(const struct text_room *room, unsigned long long left)
{
    size_t step = room->bytes < STEP ? room->bytes : STEP;
    return left < step ? (size_t)left : step;
}

void text_room_use(struct text_room *room, size_t step, const char *text, size_t n)
{
    size_t json = json_string_len(text, n);
    room->bytes -= step;
    room->json -= json < room->json ? json : room->json;
}
