/* What the process of a call says on its way, until it is done: what its answer will be made of, what it has
 * made and ended, what there is to know of jobs. */
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "serve.h"

/* ---- names ---- */

static void names_add(struct names *names, const char *name)
{
    names->list = mem_realloc(names->list, (names->n + 1) * sizeof *names->list);
    names->list[names->n++] = mem_strdup(name);
}

static void names_remove(struct names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++) {
        if (strcmp(names->list[i], name) != 0)
            continue;
        free(names->list[i]);
        names->list[i] = names->list[--names->n];
        return;
    }
}

/* ---- jobs ---- */

static struct job_note *job_of(struct serve *s, long long pid)
{
    struct job_note **at = &s->made.jobs.first;
    while (*at && (*at)->pid != pid)
        at = &(*at)->next;
    if (!*at) {
        *at = mem_zalloc(sizeof **at);
        (*at)->pid = pid;
        buf_init(&(*at)->out[0], BUF_NO_MAX);
        buf_init(&(*at)->out[1], BUF_NO_MAX);
    }
    return *at;
}

static void job_forget(struct serve *s, long long pid)
{
    struct job_note **at = &s->made.jobs.first;
    while (*at && (*at)->pid != pid)
        at = &(*at)->next;
    struct job_note *note = *at;
    if (!note)
        return;
    *at = note->next;
    buf_release(&note->out[0]);
    buf_release(&note->out[1]);
    free(note);
}

void serve_job_told(const struct call *c)
{
    if (c->said.job_ended)
        job_forget(c->serve, c->said.job);
    if (c->said.job == 0 || c->said.job_ended)
        return;
    struct job_note *note = job_of(c->serve, c->said.job);
    for (int i = 0; i < 2; i++) {
        buf_release(&note->out[i]);
        note->omitted[i] = 0;
    }
}

void serve_forget_made(struct serve *s)
{
    while (s->made.jobs.first)
        job_forget(s, s->made.jobs.first->pid);
    while (s->made.sessions.n > 0)
        names_remove(&s->made.sessions, s->made.sessions.list[0]);
    free(s->made.sessions.list);
    free(s->made.shell);
    free(s->made.browser);
    free(s->made.computer);
    s->made = (struct serve_made){.shell = NULL};
}

/* ---- frames ---- */

static long long number_in(struct span data)
{
    long long number = 0;
    if (data.n == sizeof number)
        memcpy(&number, data.s, sizeof number);
    return number;
}

static void take_job_output(struct call *c, struct span data)
{
    struct frame_output head;
    memcpy(&head, data.s, sizeof head);
    struct job_note *note = job_of(c->serve, head.pid);
    const char *text = data.s + sizeof head;
    job_note_add(note, 0, (struct span){text, head.n_out});
    job_note_add(note, 1, (struct span){text + head.n_out, data.n - sizeof head - head.n_out});
    note->seq = head.seq;
}

static void replace(char **old, const char *text)
{
    free(*old);
    *old = mem_strdup(text);
}

/* Calls of the default session that came before it had a name wait where those that name it will. */
static void take_made(struct call *c, const char *name, bool is_default)
{
    struct serve *s = c->serve;
    names_add(&s->made.sessions, name);
    if (!is_default)
        return;
    replace(&s->made.shell, name);
    replace(&c->lane->key, name);
}

static void take_closed(struct call *c, const char *name)
{
    struct serve *s = c->serve;
    names_remove(&s->made.sessions, name);
    if (!s->made.shell || strcmp(s->made.shell, name) != 0)
        return;
    free(s->made.shell);
    s->made.shell = NULL;
}

/* A session of which there is one; "": none any more. */
static void take_one(char **made, const char *name)
{
    free(*made);
    *made = *name ? mem_strdup(name) : NULL;
}

void serve_said(struct call *c, char kind, struct span data)
{
    switch (kind) {
    case FRAME_STATUS:
        replace(&c->said.status, data.s);
        break;
    case FRAME_LOG:
        serve_log(c, data.s, data.s + strlen(data.s) + 1);
        break;
    case FRAME_MADE:
    case FRAME_MADE_DEFAULT:
        take_made(c, data.s, kind == FRAME_MADE_DEFAULT);
        break;
    case FRAME_CLOSED:
        take_closed(c, data.s);
        break;
    case FRAME_BROWSER:
        take_one(&c->serve->made.browser, data.s);
        break;
    case FRAME_COMPUTER:
        take_one(&c->serve->made.computer, data.s);
        break;
    case FRAME_JOB:
        job_of(c->serve, number_in(data))->ours = true;
        break;
    case FRAME_JOB_TOLD:
    case FRAME_JOB_ENDED:
        c->said.job = number_in(data);
        c->said.job_ended = kind == FRAME_JOB_ENDED;
        break;
    case FRAME_JOB_OUTPUT:
        take_job_output(c, data);
        break;
    case FRAME_STRUCTURED:
        buf_add(&c->said.structured, data.s, data.n);
        break;
    case FRAME_TEXT:
        buf_add(&c->said.plain, data.s, data.n);
        break;
    case FRAME_IMAGE:
        buf_add(&c->said.image, data.s, data.n);
        break;
    case FRAME_ERROR:
        if (err_take(&c->said.error, data.s, data.n) < 0)
            err_set(&c->said.error, ERR_INTERNAL, "the process that did the work said what is no error");
        break;
    default:
        break;
    }
}
