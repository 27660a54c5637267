#include "span.h"

#include <string.h>

bool span_is(struct span span, const char *text)
{
    size_t n = strlen(text);
    return span.s && span.n == n && memcmp(span.s, text, n) == 0;
}
