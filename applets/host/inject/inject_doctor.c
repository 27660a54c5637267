/* What of the tools works in the target: `toolbox doctor` there, in a line. */
#include <string.h>

#include "host/inject/inject_steps.h"

/* Appends the names of what stands under that word in the report; how many there are. */
static int put_names(struct span report, const char *word, struct buf *out)
{
    struct span line;
    int n = 0;
    size_t len = strlen(word);
    for (size_t at = 0; recon_line(report, &at, &line);) {
        if (line.n <= len || memcmp(line.s, word, len) != 0)
            continue;
        n++;
        if (out)
            buf_adds(out, n > 1 ? ", " : "");
        while (line.n > len && line.s[len] == ' ')
            line = (struct span){line.s + 1, line.n - 1};
        if (out)
            transport_show(out, line.s + len, line.n - len, 60);
    }
    return n;
}

int inject_doctor(struct injection *i)
{
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    struct argv command ARGV_AUTO = {0};
    struct buf back BUF_AUTO = BUF_INIT, fails BUF_AUTO = BUF_INIT, *out = &i->r->doctor;
    struct err err;
    argv_add(&command, buf_str(&i->r->placed.path));
    argv_add(&command, "doctor");
    if (inject_call(i, NULL, &command, &c, &err) != TRANSPORT_ENDED || c.out.len == 0) {
        buf_adds(out, "it can't be asked there");
        return 0;
    }
    buf_addf(out, "%d things work", put_names(span_of(&c.out), "works ", NULL));
    if (put_names(span_of(&c.out), "FAILS ", &fails) > 0)
        buf_addf(out, "; fails: %s", fails.data);
    if (put_names(span_of(&c.out), "falls back ", &back) > 0)
        buf_addf(out, "; falls back: %s", back.data);
    if (fails.len + back.len > 0)
        buf_addf(out, " (toolbox call %s doctor tells more)", i->t->text);
    return 0;
}
