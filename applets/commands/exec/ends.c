#include "ends.h"

#include <string.h>

#include "policy_rules.h"
#include "run_end.h"
#include "wire_end.h"

struct ends ends;

static struct mux *mux;
static bool paused;

static const struct end_kind *const kinds[] = {&run_end, &connect_end, &accept_end, &listen_end, NULL};

/* Of a stream that was begun the first member of what it has is its kind. */
static const struct end_kind *kind_of(const struct mux_stream *s)
{
    return *(const struct end_kind *const *)s->work;
}

size_t ends_room(const struct mux_stream *s)
{
    return paused || s->sent_end ? 0 : s->room;
}

static void opened(void *arg, struct mux_stream *s, struct span params)
{
    struct span value;
    struct err err;
    (void)arg;
    if (json_check(params, &err) < 0) {
        mux_reset(s, "what it is to lead to is not JSON");
        return;
    }
    if (policy_rules_there()) {
        mux_reset(s, "refused by the policy of the server there: programs are started by its methods alone");
        return;
    }
    for (const struct end_kind *const *kind = kinds; *kind; kind++) {
        if (!json_member(params, (*kind)->name, &value, NULL))
            continue;
        if ((*kind)->begin(s, value, &err) < 0)
            mux_reset(s, err.msg);
        return;
    }
    mux_reset(s, "there is nothing of that kind that it could lead to");
}

static void received(void *arg, struct mux_stream *s, struct span data)
{
    (void)arg;
    kind_of(s)->received(s, data);
}

static void ended(void *arg, struct mux_stream *s)
{
    (void)arg;
    kind_of(s)->ended(s);
}

static void has_room(void *arg, struct mux_stream *s)
{
    (void)arg;
    kind_of(s)->wait(s);
}

static void closed(void *arg, struct mux_stream *s, struct span why)
{
    (void)arg, (void)why;
    kind_of(s)->closed(s);
}

void ends_begin(struct loop *loop, const struct rlimit *descriptors, struct buf *out, void (*said)(void))
{
    static const struct mux_owner owner = {
        .opened = opened, .received = received, .ended = ended, .has_room = has_room, .closed = closed};
    ends = (struct ends){.loop = loop, .descriptors = *descriptors, .said = said};
    mux = mux_new(&owner, out);
}

void ends_frame(void *arg, const struct mux_frame *f)
{
    (void)arg;
    mux_take(mux, f);
}

void ends_pause(bool full)
{
    if (!mux || paused == full)
        return;
    paused = full;
    for (struct mux_stream *s = mux_streams(mux), *next; s; s = next) {
        next = s->next;
        kind_of(s)->wait(s);
    }
}

bool ends_are_open(void)
{
    return mux && mux_count(mux) > 0;
}

void ends_finish(void)
{
    if (mux)
        mux_free(mux);
}
