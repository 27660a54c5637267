#include "err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

/* A message may quote a path or a name of any length and any bytes: what was cut off inside a character loses
 * its beginning as well. */
static void cut_at_character(char *msg, size_t cap)
{
    size_t len = strlen(msg);
    if (len + 1 < cap)
        return;
    for (size_t back = 1; back <= 3; back++) {
        if (utf8_char(msg + len - back, back) < 0) {
            msg[len - back] = '\0';
            return;
        }
    }
}

/* The text, and behind a colon what it comes from (NULL: nothing). Returns -1. */
static int put(struct err *err, int code, const char *fmt, va_list ap, const char *behind)
{
    if (!err)
        return -1;
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    cut_at_character(err->msg, sizeof err->msg);
    size_t len = strlen(err->msg);
    if (behind)
        snprintf(err->msg + len, sizeof err->msg - len, ": %s", behind);
    cut_at_character(err->msg, sizeof err->msg);
    err->code = code;
    return -1;
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int result = put(err, code, fmt, ap, NULL);
    va_end(ap);
    return result;
}

int err_sys(struct err *err, int code, int errnum, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int result = put(err, code, fmt, ap, err_text(errnum));
    va_end(ap);
    return result;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char inner[ERR_MSG_MAX];
    memcpy(inner, err->msg, sizeof inner);
    va_list ap;
    va_start(ap, fmt);
    int result = put(err, err->code, fmt, ap, inner);
    va_end(ap);
    return result;
}

int err_take(struct err *err, const void *data, size_t n)
{
    struct err taken;
    if (n != sizeof taken)
        return -1;
    memcpy(&taken, data, n);
    size_t len = strnlen(taken.msg, sizeof taken.msg);
    if (taken.code >= 0 || len == 0 || len == sizeof taken.msg || !utf8_is_valid(taken.msg, len))
        return -1;
    if (err)
        *err = taken;
    return 0;
}

const char *err_text(int errnum)
{
    return strerror(errnum);
}
