/* Errors as values.
 *
 * An error is owned by the caller and passed as the last argument; functions return 0 or a useful
 * value, and -1 after filling it. It is untouched on success. The codes are those that go over the
 * wire (JSON-RPC 2.0 and the range the protocol reserves), so that no layer translates them. */
#ifndef CORE_ERR_H
#define CORE_ERR_H

#include <stddef.h>

enum err_code {
    ERR_PARSE = -32700,           /* the text is not JSON */
    ERR_INVALID_REQUEST = -32600, /* JSON, but no JSON-RPC request */
    ERR_METHOD_NOT_FOUND = -32601,
    ERR_PARAMS = -32602,   /* names the field */
    ERR_TOOL = -32099,     /* the tool says no: shown to a model, says what is wrong and what to do */
    ERR_INTERNAL = -32098, /* a fault of ours: never the answer to ordinary misuse */
    ERR_CHUNK = -32000,    /* handle of a long answer unknown or unreadable */
};

#define ERR_MSG_MAX 1024

struct err {
    int code;
    char msg[ERR_MSG_MAX]; /* UTF-8, one sentence without a final stop; cut at a character when too long */
};

/* Fills `err` (which may be NULL) and returns -1. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As err_set, with ": " and the text of errno value `errnum` behind the message. */
int err_sys(struct err *err, int code, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Puts a context and ": " in front of the message that is there; returns -1. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Takes an error that another process has written whole, as its bytes. -1, and nothing taken, when these are
 * none: of another size, without a text or its end, with a code that none has. */
int err_take(struct err *err, const void *data, size_t n);

/* Text of an errno value, from a constant table. */
const char *err_text(int errnum);

#endif
