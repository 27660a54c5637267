/* Any bytes, whole and cut in three (the first two bytes say where): the same is said, every call that was
 * begun ends once, and what is said are lines of JSON. What becomes of a call its text says. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "rpc.h"
#include "stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct peer {
    struct stream *stream;
    struct stream_call *waits; /* one that is answered when the next has come */
    size_t begun, ended;
};

static void answer(struct stream_call *call, bool kept)
{
    struct buf text BUF_AUTO = BUF_INIT;
    rpc_put_result(&text, call->id, (struct span){"1", 1});
    stream_answer(call, span_of(&text), kept);
}

static void begin(void *arg, struct stream_call *call)
{
    struct peer *p = arg;
    struct stream_call *before = p->waits;
    p->begun++;
    p->waits = NULL;
    if (before)
        answer(before, true);
    if (call->text.n % 3 == 0)
        p->waits = call;
    else
        answer(call, call->text.n % 3 == 1);
}

static void end(void *arg, struct stream_call *call, bool delivered)
{
    struct peer *p = arg;
    (void)delivered;
    p->ended++;
    if (p->waits == call)
        p->waits = NULL;
}

static void open_peer(struct peer *p)
{
    struct stream_owner owner = {.begin = begin, .end = end, .arg = p};
    p->stream = stream_new(&owner, 8);
}

static void check_lines(const struct buf *out)
{
    for (const char *at = buf_str(out), *stop = at + out->len, *line; at < stop; at = line + 1) {
        line = memchr(at, '\n', (size_t)(stop - at));
        assert(line && json_check((struct span){at, (size_t)(line - at)}, NULL) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peer whole = {0}, cut = {0};
    size_t first = size > 2 ? data[0] * size / 256 : 0, second = size > 2 ? data[1] * size / 256 : 0;
    if (size < 2)
        return 0;
    const char *text = (const char *)data + 2;
    size -= 2;
    first = first < size ? first : size;
    second = second < size - first ? second : size - first;
    open_peer(&whole);
    open_peer(&cut);
    stream_feed(whole.stream, text, size);
    stream_feed(cut.stream, text, first);
    stream_feed(cut.stream, text + first, second);
    stream_feed(cut.stream, text + first + second, size - first - second);
    struct buf *said = stream_out(whole.stream), *other = stream_out(cut.stream);
    assert(said->len == other->len && memcmp(said->data, other->data, said->len) == 0);
    check_lines(said);
    assert(stream_open(whole.stream) == (whole.waits != NULL));
    stream_free(whole.stream);
    stream_free(cut.stream);
    assert(whole.begun == whole.ended && cut.begun == cut.ended && whole.begun == cut.begun);
    return 0;
}
