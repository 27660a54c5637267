#include "screen.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "png.h"

#define STRIP_BYTES ((size_t)512 * 1024)
enum { GRAB_SERVER = 36, UNGRAB_SERVER = 37, GET_IMAGE = 73, Z_PIXMAP = 2, XFIXES_GET_CURSOR_IMAGE = 4 };

/* ---- coordinates ---- */

int screen_from_model(const struct desk *d, long long v, bool vertical)
{
    long long model = vertical ? d->model_height : d->model_width;
    long long real = vertical ? d->x.screen.height : d->x.screen.width;
    return (int)((v * real * 2 + model) / (model * 2));
}

int screen_to_model(const struct desk *d, int v, bool vertical)
{
    long long model = vertical ? d->model_height : d->model_width;
    long long real = vertical ? d->x.screen.height : d->x.screen.width;
    return (int)((v * model * 2 + real) / (real * 2));
}

/* ---- pixels ---- */

/* A part of an area, as the server gives it: whole rows. */
struct strip {
    struct buf reply;
    const unsigned char *pixels;
    size_t stride;
};

static size_t stride_of(const struct x11_screen *s, int width)
{
    size_t pad = (size_t)s->pad;
    return ((size_t)width * (size_t)s->bits + pad - 1) / pad * pad / 8;
}

static int fetch(struct desk *d, struct area part, struct strip *strip, struct err *err)
{
    strip->stride = stride_of(&d->x.screen, part.width);
    const struct x11_request r = {
        .opcode = GET_IMAGE,
        .detail = Z_PIXMAP,
        X11_WORDS(d->x.screen.root, X11_PAIR(part.x, part.y), X11_PAIR(part.width, part.height), 0xffffffff)};
    if (x11_ask(&d->x, &r, strip->stride * (size_t)part.height, &strip->reply, err) < 0)
        return -1;
    strip->pixels = (const unsigned char *)strip->reply.data + 32;
    return 0;
}

/* What is called with the parts of an area from above to below, of a picture that is of one moment. */
typedef void (*strip_fn)(void *arg, const struct strip *strip, int from, int rows);

static int each_strip(struct desk *d, struct area area, strip_fn fn, void *arg, struct err *err)
{
    const struct x11_request grab = {.opcode = GRAB_SERVER}, ungrab = {.opcode = UNGRAB_SERVER};
    struct strip strip = {.reply = BUF_INIT};
    int rows = (int)(STRIP_BYTES / (stride_of(&d->x.screen, area.width) + 1)) & ~(SCREEN_TILE - 1);
    int result = 0;
    if (rows < SCREEN_TILE)
        rows = SCREEN_TILE;
    x11_send(&d->x, &grab);
    for (int y = 0; result == 0 && y < area.height; y += rows) {
        int n = area.height - y < rows ? area.height - y : rows;
        result = fetch(d, (struct area){area.x, area.y + y, area.width, n}, &strip, err);
        if (result == 0)
            fn(arg, &strip, y, n);
    }
    x11_send(&d->x, &ungrab);
    buf_release(&strip.reply);
    struct err ignored;
    return result == 0 ? x11_sync(&d->x, err) : (x11_sync(&d->x, &ignored), -1);
}

struct channel {
    uint32_t mask;
    int shift, bits;
};

static struct channel channel_of(uint32_t mask)
{
    struct channel c = {.mask = mask};
    while (mask && !(mask >> c.shift & 1))
        c.shift++;
    while (c.shift + c.bits < 32 && mask >> (c.shift + c.bits) & 1)
        c.bits++;
    return c;
}

static unsigned char value_of(const struct channel *c, uint32_t pixel)
{
    uint32_t v = (pixel & c->mask) >> c->shift;
    if (c->bits >= 8)
        return (unsigned char)(v >> (c->bits - 8));
    return (unsigned char)(c->bits ? v * 255 / ((1u << c->bits) - 1) : 0);
}

static void read_row(const struct x11_screen *s, const unsigned char *row, int width, unsigned char *rgb)
{
    const struct channel red = channel_of(s->red), green = channel_of(s->green), blue = channel_of(s->blue);
    int bytes = s->bits / 8;
    for (int x = 0; x < width; x++, row += bytes, rgb += 3) {
        uint32_t pixel = 0;
        for (int i = 0; i < bytes; i++)
            pixel |= (uint32_t)row[i] << 8 * (s->msb_first ? bytes - 1 - i : i);
        rgb[0] = value_of(&red, pixel);
        rgb[1] = value_of(&green, pixel);
        rgb[2] = value_of(&blue, pixel);
    }
}

/* ---- the cursor ---- */

struct cursor {
    struct buf reply;
    int x, y, width, height;
};

static void get_cursor(struct desk *d, struct cursor *c)
{
    struct err err;
    const struct x11_request r = {.opcode = d->has.xfixes, .detail = XFIXES_GET_CURSOR_IMAGE};
    if (!d->has.xfixes || x11_ask(&d->x, &r, 0, &c->reply, &err) < 0)
        return;
    const char *at = c->reply.data;
    size_t pixels = (size_t)x11_u16(at + 12) * x11_u16(at + 14);
    if (c->reply.len - 32 < pixels * 4)
        return;
    c->width = x11_u16(at + 12);
    c->height = x11_u16(at + 14);
    c->x = x11_i16(at + 8) - x11_u16(at + 16);
    c->y = x11_i16(at + 10) - x11_u16(at + 18);
}

/* On a row of the screen, from `left` on; its colours have been multiplied by how opaque they are. */
static void draw_cursor(const struct cursor *c, int left, int y, int width, unsigned char *rgb)
{
    if (y < c->y || y >= c->y + c->height)
        return;
    for (int i = 0; i < c->width; i++) {
        int x = c->x + i - left;
        uint32_t color =
            x11_u32(c->reply.data + 32 + 4 * ((size_t)(y - c->y) * (size_t)c->width + (size_t)i));
        uint32_t rest = 255 - (color >> 24);
        for (int part = 0; x >= 0 && x < width && part < 3; part++) {
            uint32_t v = (color >> (16 - 8 * part) & 0xff) + rgb[3 * x + part] * rest / 255;
            rgb[3 * x + part] = (unsigned char)(v > 255 ? 255 : v);
        }
    }
}

/* ---- scaling ---- */

/* A picture that is being made: each of its pixels is the mean of the area that it stands for. */
struct picture {
    const struct x11_screen *screen;
    struct area area;
    struct cursor cursor;
    int width, height;
    unsigned char *row;    /* of the area */
    uint32_t *across;      /* the same, made as wide as the picture: sums, of area.width in all for a pixel */
    uint64_t *sums;        /* of the picture's row that is being made, of area.width * area.height */
    unsigned char *pixels; /* of the picture */
    int at;                /* its row */
};

static void scale_across(struct picture *p)
{
    long from = p->area.width, to = p->width;
    memset(p->across, 0, (size_t)to * 3 * sizeof *p->across);
    for (long x = 0; x < from; x++) {
        long begin = x * to, end = begin + to; /* where a pixel of the picture is `from` wide */
        for (long out = begin / from; out * from < end; out++) {
            long low = out * from > begin ? out * from : begin,
                 high = (out + 1) * from < end ? (out + 1) * from : end;
            for (int part = 0; part < 3; part++)
                p->across[out * 3 + part] += p->row[x * 3 + part] * (uint32_t)(high - low);
        }
    }
}

static void scale_down(struct picture *p, long y)
{
    long from = p->area.height, to = p->height, begin = y * to, end = begin + to;
    uint64_t whole = (uint64_t)from * (uint64_t)p->area.width;
    size_t n = (size_t)p->width * 3;
    for (long out = begin / from; out * from < end; out++) {
        long low = out * from > begin ? out * from : begin,
             high = (out + 1) * from < end ? (out + 1) * from : end;
        for (size_t i = 0; i < n; i++)
            p->sums[i] += (uint64_t)p->across[i] * (uint64_t)(high - low);
        if (high < (out + 1) * from)
            continue;
        for (size_t i = 0; i < n; i++)
            p->pixels[(size_t)out * n + i] = (unsigned char)((p->sums[i] + whole / 2) / whole);
        memset(p->sums, 0, n * sizeof *p->sums);
    }
}

static void add_strip(void *arg, const struct strip *strip, int from, int rows)
{
    struct picture *p = arg;
    bool same = p->width == p->area.width && p->height == p->area.height;
    for (int y = from; y < from + rows; y++) {
        unsigned char *row = same ? p->pixels + (size_t)y * (size_t)p->width * 3 : p->row;
        read_row(p->screen, strip->pixels + (size_t)(y - from) * strip->stride, p->area.width, row);
        draw_cursor(&p->cursor, p->area.x, p->area.y + y, p->area.width, row);
        if (same)
            continue;
        scale_across(p);
        scale_down(p, y);
    }
}

int screen_png(struct desk *d, struct area area, int width, int height, bool cursor, struct buf *png,
               struct err *err)
{
    struct picture p = {
        .screen = &d->x.screen, .area = area, .width = width, .height = height, .cursor.reply = BUF_INIT};
    if (!d->x.screen.red)
        return err_set(err, ERR_TOOL,
                       "the display %s has a palette (depth %d), which can't be read; depths 15 and more can",
                       d->x.display, d->x.screen.depth);
    p.row = mem_alloc((size_t)area.width * 3);
    p.across = mem_alloc((size_t)width * 3 * sizeof *p.across);
    p.sums = mem_zalloc((size_t)width * 3 * sizeof *p.sums);
    p.pixels = mem_alloc((size_t)width * (size_t)height * 3);
    if (cursor)
        get_cursor(d, &p.cursor);
    int result = each_strip(d, area, add_strip, &p, err);
    if (result == 0)
        png_put(png, p.pixels, width, height);
    buf_release(&p.cursor.reply);
    free(p.row);
    free(p.across);
    free(p.sums);
    free(p.pixels);
    return result;
}

/* ---- what has changed ---- */

struct tiling {
    uint64_t *sums;
    int across;
    size_t row;
    int bytes; /* of a pixel */
};

static void add_tiles(void *arg, const struct strip *strip, int from, int rows)
{
    const struct tiling *t = arg;
    for (int y = from; y < from + rows; y++) {
        const unsigned char *row = strip->pixels + (size_t)(y - from) * strip->stride;
        uint64_t *sums = t->sums + (size_t)(y / SCREEN_TILE) * (size_t)t->across;
        size_t step = (size_t)t->bytes * SCREEN_TILE;
        for (size_t at = 0; at < t->row; at++)
            sums[at / step] = (sums[at / step] ^ row[at]) * 0x100000001B3u;
    }
}

uint64_t *screen_tiles(struct desk *d, int *across, int *down, struct err *err)
{
    if (desk_measure(d, err) < 0)
        return NULL;
    const struct x11_screen *s = &d->x.screen;
    *across = (s->width + SCREEN_TILE - 1) / SCREEN_TILE;
    *down = (s->height + SCREEN_TILE - 1) / SCREEN_TILE;
    struct tiling t = {.sums = mem_zalloc((size_t)*across * (size_t)*down * sizeof *t.sums),
                       .across = *across,
                       .bytes = s->bits / 8,
                       .row = (size_t)s->width * (size_t)(s->bits / 8)};
    if (each_strip(d, (struct area){0, 0, s->width, s->height}, add_tiles, &t, err) == 0)
        return t.sums;
    free(t.sums);
    return NULL;
}

bool screen_difference(const struct desk *d, const uint64_t *a, const uint64_t *b, int across, int down,
                       struct area within, struct area *changed)
{
    int left = across, right = -1, top = down, bottom = -1;
    for (int y = within.y / SCREEN_TILE; y < down && y * SCREEN_TILE < within.y + within.height; y++)
        for (int x = within.x / SCREEN_TILE; x < across && x * SCREEN_TILE < within.x + within.width; x++) {
            if (a[y * across + x] == b[y * across + x])
                continue;
            left = x < left ? x : left;
            right = x > right ? x : right;
            top = y < top ? y : top;
            bottom = y;
        }
    if (right < 0)
        return false;
    *changed = (struct area){left * SCREEN_TILE, top * SCREEN_TILE, (right - left + 1) * SCREEN_TILE,
                             (bottom - top + 1) * SCREEN_TILE};
    if (changed->x + changed->width > d->x.screen.width)
        changed->width = d->x.screen.width - changed->x;
    if (changed->y + changed->height > d->x.screen.height)
        changed->height = d->x.screen.height - changed->y;
    return true;
}
