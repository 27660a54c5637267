#include "usage_text.h"

#include <string.h>

#include "inflate.h"

static const unsigned char packed[] = {
#include "usage_packed.h"
};

bool usage_text(const char *words, struct buf *out)
{
    static const char begin[] = "Usage: toolbox ";
    struct buf all BUF_AUTO = BUF_INIT;
    size_t n = strlen(words);
    if (inflate((const char *)packed, sizeof packed, true, &all) < 0)
        return false;
    for (const char *at = buf_str(&all), *next; at; at = next) {
        const char *name = at + sizeof begin - 1;
        next = strstr(name, begin);
        if (strncmp(name, words, n) == 0 && (name[n] == ' ' || name[n] == '\n')) {
            buf_add(out, at, next ? (size_t)(next - at) : strlen(at));
            return true;
        }
    }
    return false;
}
