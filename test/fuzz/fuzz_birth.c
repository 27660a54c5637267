/* Any bytes as what a process of ours has written to the one that has started it: a keeper's word, or the
 * error that it ended with. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "keeper.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct err *err)
{
    assert(err->code < 0 && memchr(err->msg, '\0', sizeof err->msg) && *err->msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf message BUF_AUTO = BUF_INIT;
    struct err err = {0};
    buf_add(&message, (const char *)data, size);
    const char *kind, *word = keeper_word(&message, &err, &kind);
    if (word)
        assert(word > message.data && word + strlen(word) < message.data + message.len);
    else
        check(&err);
    if (!word && kind)
        assert(kind > message.data && kind + strlen(kind) < message.data + message.len);
    if (err_take(&err, data, size) == 0)
        check(&err);
    return 0;
}
