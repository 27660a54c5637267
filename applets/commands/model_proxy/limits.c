#include "limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io.h"
#include "duration.h"

#define MINUTE_MS 60000.0

static const char *const kinds[LIMIT_KINDS] = {"requests", "tokens"};

bool limits_read(const char *text, long long limits[LIMIT_KINDS])
{
    for (const char *at = text;; at++) {
        int kind = 0;
        size_t n = strcspn(at, "=");
        while (kind < LIMIT_KINDS && (strlen(kinds[kind]) != n || strncmp(at, kinds[kind], n) != 0))
            kind++;
        if (kind == LIMIT_KINDS || at[n] != '=' || at[n + 1] < '0' || at[n + 1] > '9')
            return false;
        char *end;
        errno = 0;
        limits[kind] = strtoll(at + n + 1, &end, 10);
        at = end;
        if (errno || limits[kind] <= 0 || (*at && *at != ','))
            return false;
        if (!*at)
            return true;
    }
}

/* ---- what is said, as each provider says it ---- */

static void openai_fields(struct buf *out, int kind, long long limit, long long wait_ms)
{
    buf_addf(out,
             "retry-after-ms: %lld\r\nx-ratelimit-limit-%s: %lld\r\nx-ratelimit-remaining-%s: 0\r\n"
             "x-ratelimit-reset-%s: %lldms\r\n",
             wait_ms, kinds[kind], limit, kinds[kind], kinds[kind], wait_ms);
}

static void anthropic_fields(struct buf *out, int kind, long long limit, long long wait_ms)
{
    buf_addf(out,
             "anthropic-ratelimit-%s-limit: %lld\r\nanthropic-ratelimit-%s-remaining: 0\r\n"
             "anthropic-ratelimit-%s-reset: ",
             kinds[kind], limit, kinds[kind], kinds[kind]);
    time_put(out, (wall_ms() + wait_ms + 999) / 1000);
    buf_adds(out, "\r\n");
}

static void google_body(struct buf *out, const char *message, const char *detail)
{
    buf_adds(out, "{\"error\":{");
    json_member_int(out, "code", 429);
    json_member_string(out, "message", message);
    json_member_string(out, "status", "RESOURCE_EXHAUSTED");
    buf_addf(out, ",\"details\":[{\"@type\":\"type.googleapis.com/google.rpc.%s}]}}", detail);
}

static void refuse(struct proxy_conn *conn, enum dialect dialect, int status, const char *fields,
                   const char *message, const char *more)
{
    struct buf body BUF_AUTO = BUF_INIT;
    if (dialect == GOOGLE)
        google_body(&body, message, more);
    else
        dialect_error(&body, dialect, status, (struct span){message, strlen(message)},
                      (struct span){more, strlen(more)});
    proxy_answer(conn, status, fields, span_of(&body));
}

static void refuse_rate(const struct limits *l, int kind, struct proxy_conn *conn, enum dialect dialect)
{
    struct buf fields BUF_AUTO = BUF_INIT;
    struct buf message BUF_AUTO = BUF_INIT;
    struct buf more BUF_AUTO = BUF_INIT;
    double lacks = (kind == LIMIT_REQUESTS ? 1 : 0) - l->left[kind];
    long long wait_ms = (long long)(lacks * MINUTE_MS / (double)l->rate[kind]) + 1;
    buf_addf(&fields, JSON_FIELDS "retry-after: %lld\r\n", (wait_ms + 999) / 1000);
    buf_addf(&message, "Rate limit reached: %lld %s per minute. Please try again in %.3fs.", l->rate[kind],
             kinds[kind], (double)wait_ms / 1000);
    if (dialect == OPENAI)
        openai_fields(&fields, kind, l->rate[kind], wait_ms);
    else if (dialect == ANTHROPIC)
        anthropic_fields(&fields, kind, l->rate[kind], wait_ms);
    if (dialect == GOOGLE)
        buf_addf(&more, "RetryInfo\",\"retryDelay\":\"%.3fs\"", (double)wait_ms / 1000);
    else
        buf_addf(&more, "{\"type\":\"%s\",\"code\":\"rate_limit_exceeded\"}", kinds[kind]);
    refuse(conn, dialect, 429, buf_str(&fields), buf_str(&message), buf_str(&more));
}

/* It won't be otherwise later, and clients that try again are told so. */
static void refuse_budget(const struct limits *l, int kind, struct proxy_conn *conn, enum dialect dialect)
{
    struct buf message BUF_AUTO = BUF_INIT;
    buf_addf(&message, "You have reached your specified usage limit: all %lld %s of the budget are used.",
             l->budget[kind], kinds[kind]);
    refuse(conn, dialect, dialect == ANTHROPIC ? 400 : 429, JSON_FIELDS "x-should-retry: false\r\n",
           buf_str(&message),
           dialect == GOOGLE ? "QuotaFailure\",\"violations\":[{\"quotaId\":\"BudgetPerDay\"}]"
                             : "{\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\"}");
}

/* ---- counting ---- */

static void let_time_pass(struct limits *l)
{
    long long now = now_ms();
    for (int i = 0; i < LIMIT_KINDS; i++) {
        double most = (double)l->rate[i];
        double more = l->counted_at ? (double)(now - l->counted_at) * most / MINUTE_MS : most;
        l->left[i] = l->left[i] + more < most ? l->left[i] + more : most;
    }
    l->counted_at = now;
}

bool limits_refuse(struct limits *l, struct proxy_conn *conn, enum dialect dialect)
{
    let_time_pass(l);
    for (int i = 0; i < LIMIT_KINDS; i++) {
        if (l->budget[i] && l->used[i] >= l->budget[i])
            refuse_budget(l, i, conn, dialect);
        else if (l->rate[i] && (i == LIMIT_REQUESTS ? l->left[i] < 1 : l->left[i] <= 0))
            refuse_rate(l, i, conn, dialect);
        else
            continue;
        return true;
    }
    l->used[LIMIT_REQUESTS]++;
    l->left[LIMIT_REQUESTS]--;
    return false;
}

void limits_used(struct limits *l, long long tokens)
{
    l->used[LIMIT_TOKENS] += tokens;
    l->left[LIMIT_TOKENS] -= (double)tokens;
}

/* ---- at the same time ---- */

static void take(struct slots *slots, struct slot *slot)
{
    slots->taken++;
    slot->taken = true;
    slot->start(slot->arg);
}

void slot_ask(struct slots *slots, struct slot *slot, void (*start)(void *arg), void *arg)
{
    *slot = (struct slot){.of = slots, .start = start, .arg = arg};
    if (!slots->most || slots->taken < slots->most) {
        take(slots, slot);
        return;
    }
    struct slot **last = &slots->first;
    while (*last)
        last = &(*last)->next;
    *last = slot;
}

void slot_leave(struct slot *slot)
{
    struct slots *slots = slot->of;
    slot->of = NULL;
    if (!slots)
        return;
    for (struct slot **at = &slots->first; !slot->taken && *at; at = &(*at)->next)
        if (*at == slot) {
            *at = slot->next;
            return;
        }
    slots->taken--;
    struct slot *next = slots->first;
    if (next) {
        slots->first = next->next;
        take(slots, next);
    }
}
