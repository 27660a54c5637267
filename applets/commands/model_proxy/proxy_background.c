#include "proxy_background.h"

#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "mem.h"
#include "proxy_streams.h"
#include "random.h"

#define KEPT_MAX 100 /* of those that have ended the oldest go first */
#define ID_BYTES 12

struct background {
    struct background *next; /* an older one */
    char *id;
    long long created;
    struct buf model, metadata; /* as JSON */
    struct buf text;            /* of the response, once it is there */
    void (*stop)(void *call);
    void *call; /* NULL: it has ended */
};

/* ---- what is said of one ---- */

static void put(const struct background *b, const char *status, struct buf *out)
{
    buf_addc(out, '{');
    json_member_string(out, "id", b->id);
    json_member_int(out, "created_at", b->created);
    json_key(out, "model");
    buf_add(out, b->model.data, b->model.len);
    json_key(out, "metadata");
    buf_add(out, b->metadata.data, b->metadata.len);
    json_member_string(out, "status", status);
    buf_adds(out, ",\"object\":\"response\",\"background\":true,\"output\":[],\"tools\":[],\"tool_choice\":"
                  "\"auto\",\"parallel_tool_calls\":false,\"error\":null,\"incomplete_details\":null,"
                  "\"instructions\":null,\"temperature\":null,\"top_p\":null,\"usage\":null}");
}

static void answer(struct proxy_conn *conn, const struct background *b, const char *status)
{
    struct buf body BUF_AUTO = BUF_INIT;
    if (b->text.len == 0)
        put(b, status, &body);
    proxy_answer(conn, 200, JSON_FIELDS, span_of(b->text.len > 0 ? &b->text : &body));
}

/* ---- the list ---- */

static void forget(struct background **at)
{
    struct background *b = *at;
    *at = b->next;
    if (b->call)
        b->stop(b->call);
    free(b->id);
    buf_release(&b->model);
    buf_release(&b->metadata);
    buf_release(&b->text);
    free(b);
}

void background_end(struct proxy *proxy)
{
    while (proxy->background)
        forget(&proxy->background);
}

/* False: there is none. */
static bool make_room(struct proxy *proxy)
{
    struct background **oldest = NULL;
    size_t n = 0;
    for (struct background **at = &proxy->background; *at; at = &(*at)->next, n++)
        if (!(*at)->call)
            oldest = at;
    if (n >= KEPT_MAX && oldest)
        forget(oldest);
    return n < KEPT_MAX || oldest;
}

static char *make_id(void)
{
    static unsigned char count[2];
    unsigned char b[ID_BYTES] = {0};
    count[1] = (unsigned char)(count[1] + (++count[0] == 0));
    memcpy(b, count, sizeof count);
    struct buf id = BUF_INIT;
    random_bytes(b, sizeof b); /* where there is nothing to be had by chance a number will do */
    buf_adds(&id, "resp_");
    for (size_t i = 0; i < sizeof b; i++)
        buf_addf(&id, "%02x", b[i]);
    return buf_take(&id, NULL);
}

struct background *background_new(struct proxy *proxy, struct span body, void (*stop)(void *call), void *call)
{
    struct span model = stream_string(body, "model"), metadata = stream_member(body, "metadata");
    if (!make_room(proxy))
        return NULL;
    struct background *b = mem_zalloc(sizeof *b);
    *b = (struct background){
        .next = proxy->background, .id = make_id(), .created = wall_ms() / 1000, .stop = stop, .call = call};
    buf_init(&b->model, BUF_NO_MAX);
    buf_init(&b->metadata, BUF_NO_MAX);
    buf_init(&b->text, BUF_NO_MAX);
    json_compact(&b->model, model);
    json_compact(&b->metadata, metadata.s ? metadata : (struct span){"{}", 2});
    proxy->background = b;
    return b;
}

void background_tell(const struct background *b, struct proxy_conn *conn)
{
    answer(conn, b, "queued");
}

/* ---- its end ---- */

/* An object with other members than it has. */
static void end(struct background *b, struct span object, const char *const *names, struct buf *members)
{
    struct events plan;
    events_init(&plan);
    events_put_object(&plan, object, names, buf_str(members));
    while (events_next(&plan, &b->text, BUF_NO_MAX))
        ;
    events_release(&plan);
    b->call = NULL;
}

void background_done(struct background *b, struct span response)
{
    static const char *const names[] = {"id", "background", "status", NULL};
    struct span status = stream_string(response, "status");
    struct buf members BUF_AUTO = BUF_INIT;
    json_member_string(&members, "id", b->id);
    json_member_bool(&members, "background", true);
    json_key(&members, "status");
    buf_add(&members, status.n > 2 ? status.s : "\"completed\"", status.n > 2 ? status.n : 11);
    end(b, response, names, &members);
}

void background_failed(struct background *b, struct span error)
{
    static const char *const names[] = {"error", NULL};
    struct buf stub BUF_AUTO = BUF_INIT;
    struct buf members BUF_AUTO = BUF_INIT;
    put(b, "failed", &stub);
    stream_responses_put_error(&members, error);
    end(b, span_of(&stub), names, &members);
}

/* ---- requests ---- */

static void cancel(struct background *b)
{
    if (b->call) {
        b->stop(b->call);
        b->call = NULL;
        put(b, "cancelled", &b->text);
    }
}

static void delete (struct background **at, struct proxy_conn *conn)
{
    struct buf body BUF_AUTO = BUF_INIT;
    buf_addc(&body, '{');
    json_member_string(&body, "id", (*at)->id);
    buf_adds(&body, ",\"object\":\"response\",\"deleted\":true}");
    forget(at);
    proxy_answer(conn, 200, JSON_FIELDS, span_of(&body));
}

bool background_answer(struct proxy *proxy, const struct proxy_asked *a)
{
    static const char before[] = "/responses/resp_";
    const char *id = a->what + sizeof "/responses/" - 1, *method = a->r->method;
    if (strncmp(a->what, before, sizeof before - 1) != 0)
        return false;
    size_t n = strcspn(id, "/");
    bool cancels = a->posts && strcmp(id + n, "/cancel") == 0, deletes = strcmp(method, "DELETE") == 0;
    if (!cancels && (id[n] || (!deletes && strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)))
        return false;
    struct background **at = &proxy->background;
    while (*at && (strlen((*at)->id) != n || memcmp((*at)->id, id, n) != 0))
        at = &(*at)->next;
    if (!*at) {
        struct buf why BUF_AUTO = BUF_INIT;
        buf_addf(&why,
                 "Response with id '%.*s' not found. Kept are those that were asked for with "
                 "\"background\": true, the last %d",
                 (int)n, id, KEPT_MAX);
        proxy_refuse(a->conn, OPENAI, 404, buf_str(&why));
    } else if (deletes) {
        delete (at, a->conn);
    } else {
        if (cancels)
            cancel(*at);
        answer(a->conn, *at, "in_progress");
    }
    return true;
}
