/* Who is told what begins and ends: sessions, jobs, MCP servers, browsers that this server has started. */
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "server_internal.h"

#define EVENTS_MAX 256 /* that are kept for those who are not waiting at the moment */

struct watcher {
    struct watcher *next;
    struct rpc_call *call;
};

/* One server a process. */
static MEM_LARGE struct {
    char *events[EVENTS_MAX]; /* by their number */
    long long last;           /* of those that came */
    struct watcher *watchers;
} my;

static void answer(const struct server *s, struct rpc_call *call, long long cursor)
{
    struct buf text BUF_AUTO = BUF_INIT;
    long long first = my.last > EVENTS_MAX ? my.last - EVENTS_MAX : 0;
    long long from = cursor < 0 || cursor > my.last ? my.last : cursor > first ? cursor : first;
    buf_addc(&text, '{');
    json_member_int(&text, "cursor", my.last);
    json_member_bool(&text, "ended", s->ending != NULL);
    json_member_int(&text, "dropped", cursor >= 0 && cursor < from ? from - cursor : 0);
    json_key(&text, "events");
    buf_addc(&text, '[');
    for (long long i = from; i < my.last; i++)
        buf_addf(&text, "%s%s", i > from ? "," : "", my.events[i % EVENTS_MAX]);
    buf_adds(&text, "]}");
    rpc_result_take(call, &text, 0);
}

static void drop(struct watcher *w)
{
    struct watcher **at = &my.watchers;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    free(w);
}

static void watcher_gone(void *arg)
{
    drop(arg);
}

/* All of them have what came before. */
static void wake(const struct server *s, long long cursor)
{
    while (my.watchers) {
        struct rpc_call *call = my.watchers->call;
        drop(my.watchers);
        answer(s, call, cursor);
    }
}

void server_watch(const struct server *s, struct rpc_call *call, long long cursor)
{
    if (cursor != my.last || s->ending) {
        answer(s, call, cursor);
        return;
    }
    struct watcher *w = mem_alloc(sizeof *w);
    *w = (struct watcher){my.watchers, call};
    my.watchers = w;
    rpc_on_abandon(call, watcher_gone, w);
}

void server_watch_end(const struct server *s)
{
    wake(s, my.last);
}

void server_tell(const struct server *s, const char *what, const char *whom)
{
    char **event = &my.events[my.last % EVENTS_MAX];
    free(*event);
    *event = mem_printf("{\"event\":\"%s\",%s", what, whom);
    my.last++;
    wake(s, my.last - 1);
}

void server_begun(struct server *s, pid_t pid, char *whom)
{
    struct kept *k = s->kept;
    while (k && k->pid != pid)
        k = k->next;
    server_tell(s, "begun", whom);
    if (k) {
        k->whom = whom;
        return;
    }
    server_tell(s, "ended", whom); /* so soon */
    free(whom);
}
