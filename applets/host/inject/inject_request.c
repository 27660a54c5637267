#include "host/inject/inject_request.h"

#include <string.h>

/* Lines of `exec --detect` (commands/exec/caller.h): stdin is held, or the answer was delivered; its end
 * means nothing. */
static const struct span here = {"\n", 1}, aside = {"-\n", 2};

void inject_request_send(struct inject_request *q, bool streams, struct transport_call *c, int first)
{
    q->sent = true;
    q->holds = streams;
    c->input[first] = streams ? here : (struct span){"", 0};
    c->input[first + 1] = q->text;
    if (first == 0)
        c->input[2] = (struct span){0};
}

static enum transport_step say(struct transport_call *c, struct span line, enum transport_step step)
{
    c->input[1] = line;
    c->input[2] = (struct span){0};
    return step;
}

enum transport_step inject_request_step(struct inject_request *q, size_t begin, struct transport_call *c)
{
    const char *out = buf_str(&c->out);
    size_t from = q->looked > begin ? q->looked : begin;
    const char *end = c->out.len > from ? memchr(out + from, '\n', c->out.len - from) : NULL;
    q->looked = c->out.len;
    if (end) {
        q->answered = true;
        bool delivered = q->deliver(q->deliver_arg, (struct span){out + begin, (size_t)(end - out) - begin});
        return say(c, delivered && q->holds ? here : (struct span){0}, TRANSPORT_ENDS);
    }
    if (!q->holds && c->out.len > 0) { /* it does pass output on: a mark of ours, a beat */
        q->holds = true;
        return say(c, here, TRANSPORT_SENDS);
    }
    return !q->holds && c->impatient ? say(c, aside, TRANSPORT_CLOSES) : TRANSPORT_WAITS;
}

void inject_request_end(struct inject_request *q, enum transport_end how, const struct transport_call *c)
{
    q->how = how;
    q->status = c->status;
    buf_truncate(&q->said, 0);
    if (c->err.len > 0)
        transport_show(&q->said, c->err.data, c->err.len, 400);
}
