#include <string.h>

#include "desk.h"

enum { SEND_EVENT = 25, INTERN_ATOM = 16, GET_PROPERTY = 20, QUERY_POINTER = 38, CLIENT_MESSAGE = 33 };
#define PROPERTY_MAX (16u << 20)
#define XTEST_FAKE_INPUT 2
enum { QUERY_CLIENT_IDS = 4, PROCESS_ID = 2 }; /* of the extension X-Resource */

uint32_t desk_atom(struct desk *d, const char *name, bool make)
{
    struct buf reply BUF_AUTO = BUF_INIT;
    struct err err;
    const struct x11_request r = {.opcode = INTERN_ATOM,
                                  .detail = !make,
                                  X11_WORDS((uint32_t)strlen(name)),
                                  .data = name,
                                  .n_data = strlen(name)};
    return x11_ask(&d->x, &r, 0, &reply, &err) < 0 ? 0 : x11_u32(reply.data + 8);
}

bool desk_property(struct desk *d, uint32_t window, uint32_t property, uint32_t type, struct buf *value)
{
    struct buf reply BUF_AUTO = BUF_INIT;
    struct err err;
    uint32_t left = 1;
    for (uint32_t at = 0; left > 0 && at < PROPERTY_MAX / 4; at += 65536) {
        const struct x11_request r = {.opcode = GET_PROPERTY, X11_WORDS(window, property, type, at, 65536)};
        if (property == 0 || x11_ask(&d->x, &r, 0, &reply, &err) < 0)
            return false;
        size_t n = (size_t)x11_u32(reply.data + 16) * ((unsigned char)reply.data[1] / 8);
        if (x11_u32(reply.data + 8) == 0 || n > reply.len - 32)
            return false;
        buf_add(value, reply.data + 32, n);
        left = n > 0 ? x11_u32(reply.data + 12) : 0;
    }
    return true;
}

uint32_t desk_property_number(struct desk *d, uint32_t window, const char *property)
{
    struct buf value BUF_AUTO = BUF_INIT;
    return desk_property(d, window, desk_atom(d, property, false), 0, &value) && value.len >= 4
               ? x11_u32(value.data)
               : 0;
}

pid_t desk_process(struct desk *d, uint32_t window)
{
    struct buf reply BUF_AUTO = BUF_INIT;
    struct err err;
    const struct x11_request r = {
        .opcode = d->has.resources, .detail = QUERY_CLIENT_IDS, X11_WORDS(1, window, PROCESS_ID)};
    if (!d->has.resources || x11_ask(&d->x, &r, 16, &reply, &err) < 0 || x11_u32(reply.data + 8) == 0)
        return 0;
    return (pid_t)x11_u32(reply.data + 32 + 12);
}

bool desk_speaks(struct desk *d, uint32_t window, const char *protocol)
{
    struct buf list BUF_AUTO = BUF_INIT;
    uint32_t atom = desk_atom(d, protocol, false);
    desk_property(d, window, desk_atom(d, "WM_PROTOCOLS", false), 0, &list);
    for (size_t at = 0; at + 4 <= list.len; at += 4)
        if (atom && x11_u32(list.data + at) == atom)
            return true;
    return false;
}

void desk_tell(struct desk *d, uint32_t to, uint32_t window, const char *type, const uint32_t *five,
               uint32_t mask)
{
    uint32_t atom = desk_atom(d, type, true);
    const struct x11_request r = {.opcode = SEND_EVENT,
                                  X11_WORDS(to, mask, CLIENT_MESSAGE | 32 << 8, window, atom, five[0],
                                            five[1], five[2], five[3], five[4])};
    x11_send(&d->x, &r);
}

int desk_pointer(struct desk *d, int *x, int *y, struct err *err)
{
    struct buf reply BUF_AUTO = BUF_INIT;
    const struct x11_request r = {.opcode = QUERY_POINTER, X11_WORDS(d->x.screen.root)};
    if (x11_ask(&d->x, &r, 0, &reply, err) < 0)
        return -1;
    *x = x11_i16(reply.data + 16);
    *y = x11_i16(reply.data + 18);
    return 0;
}

void desk_fake(struct desk *d, enum fake type, int detail, int x, int y, int after)
{
    const struct x11_request r = {.opcode = d->has.xtest,
                                  .detail = XTEST_FAKE_INPUT,
                                  X11_WORDS((uint32_t)type | (uint32_t)detail << 8, (uint32_t)after,
                                            d->x.screen.root, 0, 0, X11_PAIR(x, y), 0, 0)};
    x11_send(&d->x, &r);
}
