#include "fetch_progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io.h"

enum { WIDTH = 24, EVERY_MS = 100 };

void fetch_progress_begin(struct fetch_progress *p, const char *name, unsigned long long first,
                          unsigned long long total)
{
    *p = (struct fetch_progress){.name = isatty(STDERR_FILENO) ? name : NULL, .first = first, .total = total};
    p->began = now_ms();
    p->drawn = p->began - EVERY_MS;
}

/* Tenths of a megabyte, "12.3": short of floating point. */
static void put_mega(char out[24], unsigned long long bytes)
{
    snprintf(out, 24, "%llu.%llu", bytes / 1000000, bytes / 100000 % 10);
}

void fetch_progress_draw(struct fetch_progress *p, unsigned long long now)
{
    long long at = now_ms();
    if (!p->name || at - p->drawn < EVERY_MS)
        return;
    p->drawn = at;
    char bar[WIDTH + 1], done[24], all[24] = "?", speed[24];
    unsigned filled = p->total ? (unsigned)(now * WIDTH / p->total) : 0;
    memset(bar, ' ', WIDTH);
    memset(bar, '#', filled < WIDTH ? filled : WIDTH);
    bar[WIDTH] = '\0';
    put_mega(done, now);
    if (p->total)
        put_mega(all, p->total);
    put_mega(speed, (now - p->first) * 1000 / (unsigned long long)(at - p->began + 1));
    fprintf(stderr, "\r%s [%s] %s of %s MB, %s MB/s\033[K", p->name, bar, done, all, speed);
}

void fetch_progress_end(const struct fetch_progress *p)
{
    if (p->name)
        fputs("\r\033[K", stderr);
}
