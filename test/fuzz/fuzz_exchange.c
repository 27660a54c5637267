/* Any bytes as what listens at the name of a server of ours answers, in pieces whose length the first byte
 * says: an answer is no longer than was announced, and an error says why. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"
#include "exchange.h"
#include "io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int ends[2];
    struct buf answer BUF_AUTO = BUF_INIT;
    struct span request = {"{}", 2}, result;
    struct exchange x;
    struct err err = {0};
    enum exchange_want want = EXCHANGE_WRITE;
    if (size < 1 || size > 65536 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return 0;
    size_t piece = 1 + 16 * data[0], at = 1;
    exchange_init(&x, ends[0], request, &answer);
    while (want == EXCHANGE_WRITE || want == EXCHANGE_READ) {
        size_t n = size - at < piece ? size - at : piece;
        if (n > 0)
            assert(send(ends[1], data + at, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n);
        else
            io_close(&ends[1]);
        at += n;
        want = exchange_run(&x, &err);
        assert(want != EXCHANGE_FAILED || (err.code < 0 && *err.msg && errno != 0));
    }
    if (want == EXCHANGE_DONE) {
        assert(answer.len == x.length && answer.len < size);
        if (client_result(span_of(&answer), &result, &err) == 0)
            assert(result.s >= answer.data && result.s + result.n <= answer.data + answer.len);
    }
    io_close(&ends[0]);
    io_close(&ends[1]);
    return 0;
}
