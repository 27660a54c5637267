#include "png.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "deflate.h"
#include "mem.h"

#define COLORS_MAX 256
#define SLOTS 1024

/* ---- the file ---- */

static void put_u32(struct buf *out, uint32_t v)
{
    char b[4] = {(char)(v >> 24), (char)(v >> 16), (char)(v >> 8), (char)v};
    buf_add(out, b, sizeof b);
}

static uint32_t crc_of(const char *s, size_t n)
{
    uint32_t table[256], crc = 0xffffffff;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xEDB88320 : 0);
    }
    for (size_t i = 0; i < n; i++)
        crc = table[(crc ^ (unsigned char)s[i]) & 0xff] ^ crc >> 8;
    return ~crc;
}

static uint32_t adler_of(const unsigned char *s, size_t n)
{
    uint32_t a = 1, b = 0;
    while (n > 0) {
        size_t some = n < 5000 ? n : 5000;
        n -= some;
        for (; some > 0; some--) {
            a += *s++;
            b += a;
        }
        a %= 65521;
        b %= 65521;
    }
    return b << 16 | a;
}

static size_t begin_chunk(struct buf *out, const char *type)
{
    size_t at = out->len;
    put_u32(out, 0);
    buf_adds(out, type);
    return at;
}

static void end_chunk(struct buf *out, size_t at)
{
    struct buf length BUF_AUTO = BUF_INIT;
    put_u32(&length, (uint32_t)(out->len - at - 8));
    memcpy(out->data + at, length.data, 4);
    put_u32(out, crc_of(out->data + at + 4, out->len - at - 4));
}

/* ---- colours ---- */

struct palette {
    uint32_t colors[COLORS_MAX];
    uint32_t slot_color[SLOTS];
    int16_t slot[SLOTS]; /* -1: free */
    int n;
};

static int color_index(struct palette *p, uint32_t color)
{
    unsigned at = (color * 0x9E3779B1u) >> 22;
    while (p->slot[at] >= 0 && p->slot_color[at] != color)
        at = (at + 1) % SLOTS;
    if (p->slot[at] < 0) {
        if (p->n == COLORS_MAX)
            return -1;
        p->slot[at] = (int16_t)p->n;
        p->slot_color[at] = color;
        p->colors[p->n++] = color;
    }
    return p->slot[at];
}

/* False: there are too many. */
static bool find_palette(struct palette *p, const unsigned char *pixels, size_t n)
{
    uint32_t last = 0xffffffff;
    memset(p->slot, 0xff, sizeof p->slot);
    p->n = 0;
    for (size_t i = 0; i < n; i++, pixels += 3) {
        uint32_t color = (uint32_t)pixels[0] << 16 | (uint32_t)pixels[1] << 8 | pixels[2];
        if (color != last && color_index(p, color) < 0)
            return false;
        last = color;
    }
    return true;
}

/* Rows of indices, a byte with the filter (none) in front of each. */
static unsigned char *index_rows(struct palette *p, const unsigned char *pixels, int width, int height,
                                 int bits, size_t *n)
{
    size_t row = 1 + ((size_t)width * (size_t)bits + 7) / 8;
    unsigned char *rows = mem_zalloc(row * (size_t)height);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++, pixels += 3) {
            uint32_t color = (uint32_t)pixels[0] << 16 | (uint32_t)pixels[1] << 8 | pixels[2];
            size_t at = (size_t)x * (size_t)bits;
            rows[row * (size_t)y + 1 + at / 8] |=
                (unsigned char)(color_index(p, color) << (8 - bits - (int)(at % 8)));
        }
    *n = row * (size_t)height;
    return rows;
}

/* Each as the difference from the pixel to the left (1) or above (2), whichever makes the smaller numbers. */
static unsigned char *color_rows(const unsigned char *pixels, int width, int height, size_t *n)
{
    size_t row = (size_t)width * 3;
    unsigned char *rows = mem_alloc((row + 1) * (size_t)height);
    for (int y = 0; y < height; y++) {
        const unsigned char *here = pixels + row * (size_t)y;
        unsigned char *into = rows + (row + 1) * (size_t)y;
        unsigned long left = 0, above = 0;
        for (size_t i = 0; i < row; i++) {
            left += (unsigned)abs((signed char)(here[i] - (i >= 3 ? here[i - 3] : 0)));
            above += (unsigned)abs((signed char)(here[i] - (y > 0 ? here[i - row] : 0)));
        }
        into[0] = above <= left ? 2 : 1;
        for (size_t i = 0; i < row; i++) {
            int other = above <= left ? (y > 0 ? here[i - row] : 0) : i >= 3 ? here[i - 3] : 0;
            into[1 + i] = (unsigned char)(here[i] - other);
        }
    }
    *n = (row + 1) * (size_t)height;
    return rows;
}

void png_put(struct buf *out, const unsigned char *pixels, int width, int height)
{
    struct palette *p = mem_alloc(sizeof *p);
    bool few = find_palette(p, pixels, (size_t)width * (size_t)height);
    int bits = !few || p->n > 16 ? 8 : p->n > 4 ? 4 : p->n > 2 ? 2 : 1;
    char kind[5] = {(char)bits, few ? 3 : 2, 0, 0, 0};
    size_t n, at;
    buf_add(out, "\x89PNG\r\n\x1a\n", 8);
    at = begin_chunk(out, "IHDR");
    put_u32(out, (uint32_t)width);
    put_u32(out, (uint32_t)height);
    buf_add(out, kind, sizeof kind);
    end_chunk(out, at);
    at = begin_chunk(out, "PLTE");
    for (int i = 0; few && i < p->n; i++) {
        char color[3] = {(char)(p->colors[i] >> 16), (char)(p->colors[i] >> 8), (char)p->colors[i]};
        buf_add(out, color, sizeof color);
    }
    if (few)
        end_chunk(out, at);
    else
        buf_truncate(out, at);
    unsigned char *rows =
        few ? index_rows(p, pixels, width, height, bits, &n) : color_rows(pixels, width, height, &n);
    at = begin_chunk(out, "IDAT");
    buf_add(out, "\x78\x01", 2);
    deflate(out, rows, n);
    put_u32(out, adler_of(rows, n));
    end_chunk(out, at);
    end_chunk(out, begin_chunk(out, "IEND"));
    free(rows);
    free(p);
}
