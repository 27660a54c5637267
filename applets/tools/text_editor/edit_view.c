#include "edit_view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "edit_path.h"
#include "edit_text.h"
#include "title.h"
#include "utf8.h"

#define CR_SIGN "\xE2\x90\x8D" /* U+240D */
#define TAB_WIDTH 8

enum { CHUNK = 65536 };

void view_begin(struct view *v, struct buf *out, long long line)
{
    *v = (struct view){
        .out = out, .line = line, .start = out->len, .line_start = out->len, .expands = title_is_inspect()};
}

static void print(struct view *v, const char *s, size_t n)
{
    if (v->full || v->chars == EDIT_ANSWER_MAX) {
        v->full = true;
        return;
    }
    buf_add(v->out, s, n);
    v->chars++;
    v->column++;
}

static void begin_line(struct view *v)
{
    if (v->begun)
        return;
    char number[32];
    int n = snprintf(number, sizeof number, "%6lld\t", v->line);
    for (int i = 0; i < n; i++)
        print(v, number + i, 1);
    v->begun = true;
    v->column = 0;
}

static void print_char(struct view *v, const char *s, size_t n)
{
    begin_line(v);
    print(v, s, n);
}

/* What was waiting for more bytes won't get any that fit. */
static void flush(struct view *v)
{
    if (v->part.n > 0) {
        v->part.n = 0;
        v->bad_bytes = true;
        print_char(v, UTF8_REPLACEMENT, 3);
    }
    if (v->cr) {
        v->cr = false;
        v->lone_cr = true;
        print_char(v, CR_SIGN, 3);
    }
}

static void end_line(struct view *v)
{
    begin_line(v);
    print(v, "\n", 1);
    v->begun = false;
    v->line++;
}

static void take_ascii(struct view *v, char c)
{
    if (c == '\n' && v->part.n == 0)
        v->cr = false;
    flush(v);
    if (c == '\n') {
        end_line(v);
    } else if (c == '\r') {
        v->cr = true;
    } else if (c == '\t' && v->expands) {
        begin_line(v);
        do
            print(v, " ", 1);
        while (!v->full && v->column % TAB_WIDTH != 0);
    } else {
        print_char(v, &c, 1);
    }
}

static void take_byte(struct view *v, char c)
{
    if ((unsigned char)c < 0x80) {
        take_ascii(v, c);
        return;
    }
    if (v->cr)
        flush(v);
    v->part.bytes[v->part.n] = c;
    int len = utf8_char(v->part.bytes, v->part.n + 1);
    if (len == 0 && v->part.n > 0) {
        flush(v);
        v->part.bytes[0] = c;
        len = utf8_char(v->part.bytes, 1);
    }
    if (len == 0) {
        v->bad_bytes = true;
        print_char(v, UTF8_REPLACEMENT, 3);
        return;
    }
    v->part.n++;
    if (len > 0) {
        size_t n = v->part.n;
        v->part.n = 0;
        print_char(v, v->part.bytes, n);
    }
}

bool view_feed(struct view *v, const char *s, size_t n, long long last)
{
    for (size_t i = 0; i < n; i++) {
        take_byte(v, s[i]);
        if (v->full)
            return false;
        v->taken++;
        if (s[i] != '\n')
            continue;
        v->line_start = v->out->len;
        v->line_taken = v->taken;
        if (last >= 0 && v->line > last)
            return false;
    }
    return true;
}

void view_end_of_text(struct view *v)
{
    flush(v);
    end_line(v);
    if (!v->full)
        v->line_start = v->out->len;
}

void view_notes(struct view *v, long long following)
{
    if (v->full) {
        bool whole_lines = v->line_start > v->start;
        if (whole_lines)
            buf_truncate(v->out, v->line_start);
        else
            buf_addc(v->out, '\n');
        buf_addf(v->out, "[Cut at %d characters, %s line %lld", EDIT_ANSWER_MAX,
                 whole_lines ? "before" : "inside", v->line);
        long long left = following < 0 ? 0 : following - (long long)(whole_lines ? v->line_taken : v->taken);
        if (left > 0)
            buf_addf(v->out, "; %lld more bytes of the file follow", left);
        if (whole_lines)
            buf_addf(v->out, ". To see what comes next: view_range [%lld, -1]]\n", v->line);
        else
            buf_addf(
                v->out,
                ". A view shows no more of that line (`cut -c` in a shell does); to see the lines behind "
                "it, where there are any: view_range [%lld, -1]]\n",
                v->line + 1);
    }
    if (v->lone_cr)
        buf_adds(v->out, "[" CR_SIGN " stands for a carriage return that ends no line]\n");
    if (v->bad_bytes)
        buf_adds(v->out, "[" UTF8_REPLACEMENT " stands for bytes that are no UTF-8]\n");
}

static int check_range(const struct ints *range, long long *first, long long *last, struct err *err)
{
    *first = 1;
    *last = -1;
    if (range->n == 0)
        return 0;
    if (range->n != 2)
        return err_set(err, ERR_TOOL, "Invalid `view_range`: give two numbers, [first, last], not %zu",
                       range->n);
    *first = range->list[0];
    *last = range->list[1];
    if (*first < 1)
        return err_set(err, ERR_TOOL, "Invalid `view_range` [%lld, %lld]: lines are counted from 1", *first,
                       *last);
    if (*last != -1 && *last < *first)
        return err_set(
            err, ERR_TOOL,
            "Invalid `view_range` [%lld, %lld]: its last line comes before its first; -1 means to the end",
            *first, *last);
    return 0;
}

struct input {
    int fd;
    const char *shown;
    char *chunk;               /* CHUNK bytes */
    size_t n;                  /* in the chunk; 0 at the end of the file */
    unsigned long long offset; /* of the chunk's begin in the file */
    bool sparse;               /* and holes may be left out */
};

/* A hole has no lines, but can have any size. */
static void skip_hole(struct input *in)
{
    off_t data = lseek(in->fd, (off_t)in->offset, SEEK_DATA);
    if (data < 0 && errno == ENXIO)
        data = lseek(in->fd, 0, SEEK_END);
    if (data > (off_t)in->offset)
        in->offset = (unsigned long long)data;
}

static int next_chunk(struct input *in, struct err *err)
{
    in->offset += in->n;
    if (in->sparse)
        skip_hole(in);
    ssize_t n;
    do
        n = read(in->fd, in->chunk, CHUNK);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_set(err, ERR_TOOL, "%s can't be read: %s", in->shown, edit_errno(errno));
    in->n = (size_t)n;
    return 0;
}

/* Reads up to the begin of line `first`. *at: where in the chunk it begins. */
static int skip_to_line(struct input *in, long long first, size_t *at, struct err *err)
{
    long long line = 1;
    for (;;) {
        if (next_chunk(in, err) < 0)
            return -1;
        *at = 0;
        if (line == first)
            return 0;
        if (in->n == 0)
            return err_set(err, ERR_TOOL,
                           "Invalid `view_range`: it starts at line %lld, but %s has %lld line%s", first,
                           in->shown, line, line == 1 ? "" : "s");
        long long here = (long long)text_count_lf(in->chunk, in->n);
        if (line + here < first) {
            line += here;
            continue;
        }
        while (line < first) {
            const char *lf = memchr(in->chunk + *at, '\n', in->n - *at);
            *at = (size_t)(lf - in->chunk) + 1;
            line++;
        }
        return 0;
    }
}

int view_file(int fd, const struct stat *st, const struct ints *range, const char *shown, struct buf *out,
              struct err *err)
{
    char chunk[CHUNK];
    struct input in = {.fd = fd, .shown = shown, .chunk = chunk};
    long long first, last;
    size_t at = 0;
    if (check_range(range, &first, &last, err) < 0)
        return -1;
    in.sparse = first > 1 && st->st_blocks < st->st_size / 512;
    if (skip_to_line(&in, first, &at, err) < 0)
        return -1;
    in.sparse = false; /* what is shown is shown whole */
    struct view v;
    view_begin(&v, out, first);
    unsigned long long begin = in.offset + at;
    while (in.n > 0 && view_feed(&v, chunk + at, in.n - at, last)) {
        at = 0;
        if (next_chunk(&in, err) < 0)
            return -1;
    }
    if (in.n == 0)
        view_end_of_text(&v);
    unsigned long long size = (unsigned long long)st->st_size;
    view_notes(&v, size > begin ? (long long)(size - begin) : -1);
    return 0;
}
