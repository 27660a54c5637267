#include "host/outlet/outlet_hello.h"

#include <string.h>

enum {
    RECORD_HEAD = 5,
    RECORD_MAX = 16384,
    RECORD_HANDSHAKE = 22,
    MESSAGE_HEAD = 4,
    CLIENT_HELLO = 1,
    EXTENSION_NAME = 0,
    EXTENSION_ENCRYPTED = 0xfe0d,
};

/* Takes n bytes from the front. False: there are fewer. */
static bool take(struct span *from, size_t n, struct span *taken)
{
    if (from->n < n)
        return false;
    *taken = (struct span){from->s, n};
    from->s += n;
    from->n -= n;
    return true;
}

static bool take_number(struct span *from, size_t bytes, size_t *n)
{
    struct span got;
    if (!take(from, bytes, &got))
        return false;
    for (*n = 0; got.n > 0; got.s++, got.n--)
        *n = *n << 8 | (unsigned char)*got.s;
    return true;
}

/* As many as the number in front says. */
static bool take_counted(struct span *from, size_t bytes, struct span *taken)
{
    size_t n;
    return take_number(from, bytes, &n) && take(from, n, taken);
}

/* One name, and no more. */
static bool read_name(struct span extension, struct outlet_hello *hello)
{
    struct span list, name;
    size_t kind;
    return !hello->name[0] && take_counted(&extension, 2, &list) && extension.n == 0 &&
           take_number(&list, 1, &kind) && kind == 0 && take_counted(&list, 2, &name) && list.n == 0 &&
           outlet_host(name.s, name.n, hello->name);
}

static bool read_message(struct span m, struct outlet_hello *hello)
{
    struct span skipped, extensions, one;
    size_t kind;
    if (!take(&m, 2 + 32, &skipped) || !take_counted(&m, 1, &skipped) || !take_counted(&m, 2, &skipped) ||
        !take_counted(&m, 1, &skipped))
        return false;
    if (m.n == 0)
        return true;
    if (!take_counted(&m, 2, &extensions) || m.n > 0)
        return false;
    while (extensions.n > 0) {
        if (!take_number(&extensions, 2, &kind) || !take_counted(&extensions, 2, &one) ||
            (kind == EXTENSION_NAME && !read_name(one, hello)))
            return false;
        hello->encrypted |= kind == EXTENSION_ENCRYPTED;
    }
    return true;
}

/* The message out of records. */
static int gather(struct span data, char *bytes, struct span *message)
{
    struct span record, head;
    size_t kind, length = OUTLET_HELLO_MAX;
    *message = (struct span){bytes, 0};
    do {
        if (data.n > 0 && (data.s[0] != RECORD_HANDSHAKE || (data.n > 1 && data.s[1] != 3)))
            return -1;
        if (!take(&data, 3, &head) || !take_counted(&data, 2, &record))
            return 0;
        if (record.n == 0 || record.n > RECORD_MAX)
            return -1;
        memcpy(bytes + message->n, record.s, record.n);
        message->n += record.n;
        head = *message;
        take_number(&head, 1, &kind);
        if (kind != CLIENT_HELLO)
            return -1;
        if (take_number(&head, 3, &length))
            length += MESSAGE_HEAD;
        else
            length = OUTLET_HELLO_MAX;
    } while (message->n < length);
    *message = (struct span){bytes + MESSAGE_HEAD, length - MESSAGE_HEAD};
    return 1;
}

int outlet_hello_read(struct span data, struct outlet_hello *hello)
{
    char bytes[OUTLET_HELLO_MAX];
    struct span message;
    *hello = (struct outlet_hello){0};
    bool all = data.n >= sizeof bytes;
    int result = gather((struct span){data.s, all ? sizeof bytes : data.n}, bytes, &message);
    return result == 1 ? (read_message(message, hello) ? 1 : -1) : all ? -1 : result;
}
