/* Any bytes as what a target's shell has answered, and as a target on the command line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/inject/recon.h"
#include "host/inject/target.h"
#include "host/inject/transport.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_answer(struct span answer)
{
    struct recon r;
    struct err err = {0};
    struct buf member BUF_AUTO = BUF_INIT;
    if (!recon_read(&r, answer) && (r.whole || r.found || r.dirs.n > 0))
        abort();
    if (r.dirs.n > RECON_DIRS_MAX || (r.verdict.s && json_kind(r.verdict) != JSON_OBJECT))
        abort();
    for (size_t i = 0; i < r.dirs.n; i++)
        if (r.dirs.words[i][0] != '/' || strchr(r.dirs.words[i], '\n'))
            abort();
    if (!recon_arch(&r, &err) && err.msg[0] == '\0')
        abort();
    for (const char *c = err.msg; *c; c++)
        if ((unsigned char)*c < ' ')
            abort();
    recon_member(r.verdict, "sha256", &member);
    recon_release(&r);
}

static void check_shown(struct span answer)
{
    struct buf out BUF_AUTO = BUF_INIT;
    transport_show(&out, answer.s, answer.n, 64);
    for (size_t i = 0; i < out.len; i++)
        if ((unsigned char)out.data[i] < ' ')
            abort();
    if (out.len > 64 + 3)
        abort();
}

static void check_target(struct span text)
{
    struct runtime_options none = {0};
    struct target t = {0};
    char *word = strndup(text.s, text.n);
    struct argv command = {0}, out = {0};
    argv_add(&command, "x");
    if (target_parse(&t, word, &none, NULL) == 0 && !target_is_pattern(&t) && t.kind->enter &&
        (target_command(&t, NULL, &command, &out, NULL) < 0 || out.n == 0))
        abort();
    target_release(&t);
    argv_release(&command);
    argv_release(&out);
    free(word);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};
    check_answer(text);
    check_shown(text);
    check_target(text);
    return 0;
}
