#include "job_record.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"

void record_release(struct record *r)
{
    buf_release(&r->text[0]);
    buf_release(&r->text[1]);
    free(r->marks);
    r->marks = NULL;
    r->n_marks = 0;
}

void record_acknowledge(struct record *r, long long seq)
{
    size_t n = 0;
    if (seq > r->seq)
        seq = r->seq;
    while (n < r->n_marks && r->marks[n].seq <= seq)
        n++;
    if (n == 0)
        return;
    for (int i = 0; i < 2; i++) {
        size_t freed = (size_t)(r->marks[n - 1].end[i] - r->base[i]);
        buf_consume(&r->text[i], freed);
        buf_shrink(&r->text[i]);
        r->base[i] += freed;
    }
    r->n_marks -= n;
    memmove(r->marks, r->marks + n, r->n_marks * sizeof *r->marks);
}

void record_mark(struct record *r, long long seq)
{
    unsigned long long end[2] = {r->base[0] + r->text[0].len, r->base[1] + r->text[1].len};
    bool any = r->text[0].len > 0 || r->text[1].len > 0;
    if (!any || (r->n_marks > 0 && memcmp(r->marks[r->n_marks - 1].end, end, sizeof end) == 0))
        return;
    if ((r->n_marks & (r->n_marks - 1)) == 0)
        r->marks = mem_realloc(r->marks, (r->n_marks ? r->n_marks * 2 : 1) * sizeof *r->marks);
    r->marks[r->n_marks++] = (struct record_mark){seq, {end[0], end[1]}};
}

void record_count(struct record *r)
{
    record_mark(r, ++r->seq);
    r->told = r->told || r->end.ended;
}
