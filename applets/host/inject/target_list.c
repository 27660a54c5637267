#include "host/inject/target_list.h"

#include <stdlib.h>
#include <string.h>

#include "glob.h"
#include "host/inject/recon.h"
#include "mem.h"

void target_list_release(struct target_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        target_release(&l->list[i]);
    free(l->list);
    *l = (struct target_list){0};
}

static int add_one(struct target_list *l, const char *text, const struct runtime_options *options,
                   const char *unlisted, struct err *err)
{
    struct target t;
    if (target_parse(&t, text, options, err) < 0) {
        target_release(&t);
        return -1;
    }
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->list[i].text, text) == 0) {
            target_release(&t);
            return 0;
        }
    t.unlisted = unlisted ? mem_strdup(unlisted) : NULL;
    l->list = mem_realloc(l->list, (l->n + 1) * sizeof *l->list);
    l->list[l->n++] = t;
    return 0;
}

/* One that a pattern's listing has named. */
static char *text_for(const struct target *pattern, const char *name)
{
    if (pattern->kind->parts == 4)
        return mem_printf("%s:%s/%s/%s/%s", pattern->kind->scheme, pattern->parts[0] ? pattern->parts[0] : "",
                          pattern->parts[1] ? pattern->parts[1] : "", name,
                          pattern->parts[3] ? pattern->parts[3] : "");
    if (!pattern->kind->enter)
        return mem_printf("docker:%s", name);
    return mem_printf("%s:%.*s%s", pattern->kind->scheme, (int)(target_id(pattern) - pattern->name),
                      pattern->name, name);
}

static bool fits(const struct target *pattern, const char *name)
{
    const char *wanted = pattern->kind->parts == 4 ? pattern->parts[2] : target_id(pattern);
    return *name && *name != '-' && (!pattern->kind->enter || *wanted == '-' || glob_match(wanted, name));
}

static int list_pattern(const struct target *pattern, struct transport *transport, struct transport_call *c,
                        struct err *err)
{
    struct argv command ARGV_AUTO = {0};
    struct buf said BUF_AUTO = BUF_INIT;
    c->out_max = 16u << 20;
    if (pattern->kind->list(pattern, &command, err) < 0)
        return -1;
    if (transport_run(transport, command.words, c, err) != TRANSPORT_ENDED)
        return -1;
    transport_said(c, &said);
    return c->status == 0 ? 0
                          : err_set(err, ERR_TOOL, "what runs can't be listed (exit status %d)%s%s",
                                    c->status, said.len > 0 ? ": " : "", buf_str(&said));
}

static int add_pattern(struct target_list *l, const struct target *pattern, struct transport *transport,
                       struct err *err)
{
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    struct span line;
    size_t found = 0;
    if (list_pattern(pattern, transport, &c, err) < 0)
        return add_one(l, pattern->text, &pattern->options, err->msg, err);
    for (size_t at = 0; recon_line(span_of(&c.out), &at, &line);) {
        char *name MEM_AUTO = mem_dup(line.s, line.n);
        if (!fits(pattern, name))
            continue;
        char *text MEM_AUTO = text_for(pattern, name);
        if (add_one(l, text, &pattern->options, NULL, err) < 0)
            return add_one(l, pattern->text, &pattern->options, err->msg, err);
        found++;
    }
    return found > 0 ? 0 : add_one(l, pattern->text, &pattern->options, "nothing that runs fits it", err);
}

int target_list_add(struct target_list *l, const char *text, const struct runtime_options *options,
                    struct transport *transport, struct err *err)
{
    struct target t TARGET_AUTO;
    if (target_parse(&t, text, options, err) < 0)
        return -1;
    return target_is_pattern(&t) ? add_pattern(l, &t, transport, err) : add_one(l, text, options, NULL, err);
}
