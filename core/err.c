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

static void format(struct err *err, const char *fmt, va_list ap)
{
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    cut_at_character(err->msg, sizeof err->msg);
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
    if (!err)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    format(err, fmt, ap);
    va_end(ap);
    err->code = code;
    return -1;
}

static void append(struct err *err, const char *text)
{
    size_t len = strlen(err->msg);
    snprintf(err->msg + len, sizeof err->msg - len, ": %s", text);
    cut_at_character(err->msg, sizeof err->msg);
}

int err_sys(struct err *err, int code, int errnum, const char *fmt, ...)
{
    if (!err)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    format(err, fmt, ap);
    va_end(ap);
    append(err, err_text(errnum));
    err->code = code;
    return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char inner[ERR_MSG_MAX];
    memcpy(inner, err->msg, sizeof inner);
    va_list ap;
    va_start(ap, fmt);
    format(err, fmt, ap);
    va_end(ap);
    append(err, inner);
    return -1;
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
