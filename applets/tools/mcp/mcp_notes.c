#include "mcp_notes.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"

struct mcp_note {
    struct mcp_note *next;
    size_t len;
    char text[];
};

static void drop_first(struct mcp_notes *notes)
{
    struct mcp_note *note = notes->first;
    notes->first = note->next;
    if (!notes->first)
        notes->last = NULL;
    notes->n--;
    notes->bytes -= note->len;
    free(note);
}

void mcp_notes_add(struct mcp_notes *notes, struct span notification)
{
    if (notification.n > MCP_NOTES_BYTES) {
        notes->dropped++;
        return;
    }
    while (notes->n >= MCP_NOTES_MAX || notes->bytes + notification.n > MCP_NOTES_BYTES) {
        drop_first(notes);
        notes->dropped++;
    }
    struct mcp_note *note = mem_alloc(sizeof *note + notification.n);
    note->next = NULL;
    note->len = notification.n;
    memcpy(note->text, notification.s, notification.n);
    *(notes->last ? &notes->last->next : &notes->first) = note;
    notes->last = note;
    notes->n++;
    notes->bytes += notification.n;
    notes->taken++;
}

unsigned long long mcp_notes_put(const struct mcp_notes *notes, const char *key, long long max,
                                 struct buf *out)
{
    unsigned long long given = 0;
    json_key(out, key);
    buf_addc(out, '[');
    for (const struct mcp_note *note = notes->first; note && (long long)given < max; note = note->next) {
        if (given++ > 0)
            buf_addc(out, ',');
        buf_add(out, note->text, note->len);
    }
    buf_addc(out, ']');
    json_member_int(out, "dropped", (long long)notes->dropped);
    json_member_int(out, "remaining", (long long)(notes->n - given));
    return notes->taken - notes->n + given;
}

void mcp_notes_forget(struct mcp_notes *notes, unsigned long long number, unsigned long long dropped)
{
    while (notes->n > 0 && notes->taken - notes->n < number)
        drop_first(notes);
    notes->dropped -= dropped < notes->dropped ? dropped : notes->dropped;
}
