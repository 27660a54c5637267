#include "host/inject/inject_request.h"

#include <string.h>

#include "json.h"

/* Lines of `exec --detect` (commands/exec/caller.h): stdin is held, or the answer was delivered; its end
 * means nothing. */
static const struct span here = {"\n", 1}, aside = {"-\n", 2};

void inject_request_send(struct inject_request *q, bool streams, struct transport_call *c, int first)
{
    q->sent = true;
    q->holds = streams;
    q->line = q->looked = 0;
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

/* Takes the next line that is an answer. What others print there is none: a banner, what a shell says. */
static bool next_answer(struct inject_request *q, const struct buf *out, struct span *answer)
{
    const char *end;
    struct span version;
    while (out->len > q->looked && (end = memchr(out->data + q->looked, '\n', out->len - q->looked))) {
        *answer = (struct span){out->data + q->line, (size_t)(end - out->data) - q->line};
        q->line = q->looked = (size_t)(end - out->data) + 1;
        if (json_check(*answer, NULL) == 0 && json_kind(*answer) == JSON_OBJECT &&
            json_member(*answer, "jsonrpc", &version, NULL))
            return true;
    }
    q->looked = out->len;
    return false;
}

enum transport_step inject_request_step(struct inject_request *q, size_t begin, struct transport_call *c)
{
    struct span answer;
    q->begin = begin;
    if (q->line < begin)
        q->line = q->looked = begin;
    if (next_answer(q, &c->out, &answer)) {
        q->answered = true;
        return say(c, q->deliver(q->deliver_arg, answer) && q->holds ? here : (struct span){0},
                   TRANSPORT_ENDS);
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
    else if (c->out.len > q->begin)
        transport_show(&q->said, c->out.data + q->begin, c->out.len - q->begin, 400);
}
