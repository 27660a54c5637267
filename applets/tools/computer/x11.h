/* A client of the X Window System's core protocol, for one connection.
 *
 * Requests are sequences of 32-bit words. What is asked waits for its answer, for X11_PATIENCE_MS at most;
 * events that come meanwhile are kept. Nothing that a server says is believed: every length is checked
 * against what is there, and a connection on which something can't be right is not used any more. */
#ifndef APPLETS_COMPUTER_X11_H
#define APPLETS_COMPUTER_X11_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

#define X11_PATIENCE_MS 10000
#define X11_EVENT_SIZE 32

/* The screen that is worked on, as the server has described it. */
struct x11_screen {
    uint32_t root;
    int width, height;
    int depth, bits; /* of a pixel; bits: as it is in a picture */
    int pad;         /* a row of a picture takes a multiple of so many bits */
    bool msb_first;
    uint32_t red, green, blue; /* masks; 0: pixels are no colours */
};

struct x11 {
    int fd;
    char *display;
    uint16_t sequence; /* of the last request */
    struct buf out, in, events;
    uint32_t id_next, id_mask, id_base;
    unsigned char key_min, key_max;
    struct x11_screen screen;
    bool dead;
    struct err end; /* then: why */
};

/* Connects to a display (":0", "host:1.0", "unix:0"), with the cookie that the file of that path has for it
 * (NULL: without). -1 with ERR_TOOL. */
int x11_open(struct x11 *x, const char *display, const char *authority, struct err *err);
void x11_close(struct x11 *x);

/* For x11_open: sets up what lies on a connected descriptor, which is the struct's from now on. */
int x11_set_up(struct x11 *x, int fd, const char *display, int screen, const struct buf *cookie,
               struct err *err);

uint32_t x11_new_id(struct x11 *x);

/* Puts a request behind those that are to be sent: its words behind the first, and then bytes. Every server
 * takes one of X11_DATA_MAX bytes. */
#define X11_DATA_MAX 16000
struct x11_request {
    unsigned char opcode, detail;
    const uint32_t *words;
    size_t n_words;
    const void *data;
    size_t n_data;
};
#define X11_WORDS(...)                                                                                       \
    .words = (const uint32_t[]){__VA_ARGS__}, .n_words = sizeof((const uint32_t[]){__VA_ARGS__}) / 4
#define X11_PAIR(low, high) ((uint32_t)(uint16_t)(low) | (uint32_t)(uint16_t)(high) << 16)
void x11_send(struct x11 *x, const struct x11_request *request);

/* The same, and waits for its answer: 32 bytes and what follows them, of which there are at least `least`. */
int x11_ask(struct x11 *x, const struct x11_request *request, size_t least, struct buf *reply,
            struct err *err);

/* Waits until the server has done everything up to now. */
int x11_sync(struct x11 *x, struct err *err);

/* Reads what has come, without waiting; -1: the connection has ended. Events are in x->events. */
int x11_look(struct x11 *x, struct err *err);
/* Waits for an event of that type (0: any), which it takes; false: none has come in time, or never will. */
bool x11_event(struct x11 *x, int type, int ms, unsigned char event[X11_EVENT_SIZE]);

/* Numbers in what has come, at a place that is known to be there. */
static inline uint32_t x11_u32(const void *at)
{
    const unsigned char *b = at;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}
static inline uint16_t x11_u16(const void *at)
{
    const unsigned char *b = at;
    return (uint16_t)(b[0] | b[1] << 8);
}
static inline int x11_i16(const void *at)
{
    return (int16_t)x11_u16(at);
}

#endif
