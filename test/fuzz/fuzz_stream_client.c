/* Any bytes from the target's side of a stream, whole and in pieces (the first byte says how long): the same
 * is told, each request is answered once at most, with the id that it had, and what is told is JSON.
 *
 * The second byte says how many requests are open. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "stream_client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OPEN_MAX 8
#define ID "\"its own\""

struct asker {
    struct buf heard;
    int answers[OPEN_MAX];
};

static void on_hello(void *arg, struct span params)
{
    struct asker *a = arg;
    assert(a->heard.len == 0 && json_check(params, NULL) == 0);
    buf_addf(&a->heard, "hello\n");
}

static void on_answer(void *arg, void *work, struct span response)
{
    struct asker *a = arg;
    struct span id;
    int *count = work;
    assert(a->heard.len > 0 && ++*count == 1 && json_check(response, NULL) == 0);
    assert(json_member(response, "id", &id, NULL) && span_is(id, ID));
    buf_add(&a->heard, response.s, response.n);
    buf_addc(&a->heard, '\n');
}

/* Whether it is a stream of ours to its end. */
static int hear(struct asker *a, const uint8_t *data, size_t size, size_t piece, int open)
{
    static const char text[] = "{\"id\":" ID ",\"method\":\"x\"}";
    struct stream_client_owner owner = {.hello = on_hello, .answer = on_answer, .arg = a};
    struct stream_client *c = stream_client_new(&owner);
    int result = 0;
    for (int i = 0; i < open; i++)
        stream_client_send(c, (struct span){text, sizeof text - 1}, (struct span){text + 6, sizeof ID - 1},
                           &a->answers[i]);
    for (size_t at = 0; at < size && result == 0; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        char *block = malloc(n); /* a read beyond it is seen */
        assert(block);
        memcpy(block, data + at, n);
        result = stream_client_feed(c, block, n);
        free(block);
    }
    stream_client_free(c);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 65536)
        return 0;
    struct asker whole = {.heard = BUF_INIT}, pieces = {.heard = BUF_INIT};
    int open = data[1] % (OPEN_MAX + 1);
    int one = hear(&whole, data + 2, size - 2, size, open);
    int other = hear(&pieces, data + 2, size - 2, 1u + data[0], open);
    assert(one == other && strcmp(buf_str(&whole.heard), buf_str(&pieces.heard)) == 0);
    buf_release(&whole.heard);
    buf_release(&pieces.heard);
    return 0;
}
