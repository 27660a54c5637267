/* Any bytes on a shell's private channel, to which every program of its user can write: only what stands
 * behind the secret is a message, whole and in pieces the same ones, and what is left is bounded.
 *
 * The first byte says how long the pieces are. In the rest 2 stands for the secret, and 3 for the one that
 * was offered. */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/bash_session/session_channel.h"
#include "io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX 8192
#define SECRET "0123456789abcdef0123456789abcdef"
#define OFFERED "fedcba9876543210fedcba9876543210"

static void put(struct buf *text, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (data[i] == 2 || data[i] == 3)
            buf_adds(text, data[i] == 2 ? SECRET : OFFERED);
        else
            buf_addc(text, (char)data[i]);
    }
}

/* What a message says, as text. */
static void show(struct buf *out, const struct channel_message *m)
{
    assert(m->cwd && (m->ps2 != NULL) == (m->kind == 'P') && (!m->prompt || m->kind == 'Q'));
    assert(!m->armed || m->kind == 'Q');
    buf_addf(out, "%c %ld %d %s|%s|%d|%s\n", m->kind, m->pid, m->status, m->cwd, m->ps2 ? m->ps2 : "",
             m->armed, m->prompt ? m->prompt : "");
}

static void read_all(const struct buf *text, size_t piece, struct buf *out)
{
    int ends[2];
    struct channel_message m;
    struct channel c = {.pty = PTY_INIT, .secret = SECRET, .offered = OFFERED, .incoming = {.max = 1u << 17}};
    assert(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    c.pty.master = ends[0];
    for (size_t at = 0; at < text->len; at += piece) {
        size_t n = text->len - at < piece ? text->len - at : piece;
        assert(write(ends[1], text->data + at, n) == (ssize_t)n);
        while (channel_read(&c, &m)) {
            show(out, &m);
            channel_message_release(&m);
        }
        assert(c.incoming.len <= c.incoming.max);
        assert(strcmp(c.secret, SECRET) == 0 || (strcmp(c.secret, OFFERED) == 0 && !*c.offered));
    }
    close(ends[1]);
    channel_close(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf text BUF_AUTO = BUF_INIT, whole BUF_AUTO = BUF_INIT, pieces BUF_AUTO = BUF_INIT;
    if (size < 1 || size > INPUT_MAX)
        return 0;
    put(&text, data + 1, size - 1);
    if (text.len > INPUT_MAX)
        return 0;
    read_all(&text, INPUT_MAX, &whole);
    read_all(&text, 1 + data[0], &pieces);
    assert(strcmp(buf_str(&whole), buf_str(&pieces)) == 0);
    assert(whole.len == 0 || strstr(text.data, SECRET) ||
           memmem(text.data, text.len, SECRET, strlen(SECRET)) ||
           memmem(text.data, text.len, OFFERED, strlen(OFFERED)));
    return 0;
}
