#include "host/inject/inject_report.h"

#include <string.h>

#include "host/inject/transport.h"
#include "json.h"

static void put_ms(struct buf *out, long long us)
{
    buf_addf(out, "%lld.%lld", us / 1000, us % 1000 / 100);
}

static long long total_us(const struct inject_result *r)
{
    long long sum = r->whole_us;
    for (int s = 0; s < N_STEPS; s++)
        sum += r->us[s] > 0 ? r->us[s] : 0;
    return sum;
}

static void put_steps(const struct inject_result *r, struct buf *out)
{
    struct buf steps BUF_AUTO = BUF_INIT;
    for (int s = 0; s < N_STEPS; s++) {
        if (r->us[s] < 0)
            continue;
        buf_addc(&steps, steps.len > 0 ? ',' : '[');
        buf_addc(&steps, '{');
        json_member_string(&steps, "step", inject_steps[s]);
        json_key(&steps, "ms");
        put_ms(&steps, r->us[s]);
        buf_addc(&steps, '}');
    }
    json_key(out, "steps");
    buf_addf(out, "%s]", steps.len > 0 ? buf_str(&steps) : "[");
    json_key(out, "ms");
    put_ms(out, total_us(r));
}

static void put_text(struct buf *out, const char *key, const struct buf *text)
{
    json_member_string(out, key, text->len > 0 ? text->data : NULL);
}

void report_json(const struct inject_result *r, struct buf *out)
{
    buf_addc(out, '{');
    json_member_string(out, "target", r->target);
    json_member_bool(out, "ok", r->ok);
    json_member_int(out, "exit", r->ok ? 0 : r->exit);
    if (!r->ok) {
        json_member_string(out, "step", inject_steps[r->step]);
        put_text(out, "message", &r->message);
        put_text(out, "tried", &r->tried);
        put_text(out, "advice", &r->advice);
    }
    put_text(out, "about", &r->about);
    json_member_string(out, "arch", *r->arch ? r->arch : NULL);
    if (r->ok) {
        put_text(out, "path", &r->path);
        json_member_string(out, "state", r->state);
        json_member_string(out, "sha256", *r->sha256 ? r->sha256 : NULL);
        json_member_int(out, "size", (long long)r->size);
        json_member_string(out, "uid", *r->uid ? r->uid : NULL);
        put_text(out, "server", &r->server);
        put_text(out, "ended", &r->ended);
        put_text(out, "moved", &r->moved);
        put_text(out, "stayed", &r->stayed);
    }
    json_member_int(out, "calls", r->calls);
    json_member_int(out, "sent", (long long)r->sent);
    put_steps(r, out);
    buf_addc(out, '}');
}

/* What there is to say about a step that went well. */
static void put_detail(const struct inject_result *r, enum inject_step step, struct buf *out)
{
    switch (step) {
    case STEP_RECON:
        buf_adds(out, buf_str(&r->about));
        if (*r->uid)
            buf_addf(out, ", uid %s", r->uid);
        break;
    case STEP_CHOICE:
        buf_addf(out, "%s, %zu bytes", r->arch, r->size);
        break;
    case STEP_PLACING:
        buf_adds(out, buf_str(&r->path));
        break;
    case STEP_PROOF:
        buf_addf(out, "sha256 %.16s…", r->sha256);
        break;
    case STEP_SERVER:
        buf_adds(out, buf_str(&r->server));
        break;
    case STEP_DOCTOR:
        buf_adds(out, buf_str(&r->doctor));
        break;
    default:
        break;
    }
}

void report_steps(const struct inject_result *r, struct buf *out)
{
    for (int s = 0; s < N_STEPS; s++) {
        struct buf ms BUF_AUTO = BUF_INIT;
        if (r->us[s] < 0)
            continue;
        put_ms(&ms, r->us[s]);
        buf_addf(out, "  %-8s %8s ms  ", inject_steps[s], buf_str(&ms));
        put_detail(r, (enum inject_step)s, out);
        buf_addc(out, '\n');
    }
    buf_addf(out, "  %d call%s of the runtime%s%s, %zu bytes sent\n", r->calls, r->calls == 1 ? "" : "s",
             transport_over ? " over " : "", transport_over ? transport_over : "", r->sent);
}

void report_text(const struct inject_result *r, const char *applet, struct buf *out)
{
    struct buf target BUF_AUTO = BUF_INIT;
    transport_show(&target, r->target, strlen(r->target), 1000);
    if (r->ok) {
        buf_addf(out, "%s is %s: ", buf_str(&target), *r->sha256 ? "ready" : "clean");
        if (r->path.len > 0)
            buf_addf(out, "%s (%s", r->path.data, r->state);
        else
            buf_addf(out, "%s", r->state);
        if (r->ended.len > 0)
            buf_addf(out, ", ended %s", r->ended.data);
        if (r->moved.len > 0)
            buf_addf(out, ", moved %s", r->moved.data);
        if (r->stayed.len > 0)
            buf_addf(out, ", stays in its build: %s", r->stayed.data);
        if (*r->sha256) {
            buf_adds(out, ", ");
            put_ms(out, total_us(r));
            buf_adds(out, " ms");
        }
        buf_adds(out, r->path.len > 0 ? ")\n" : "\n");
        return;
    }
    buf_addf(out, "toolbox %s: %s: %s: %s\n", applet, buf_str(&target), inject_steps[r->step],
             buf_str(&r->message));
    if (r->tried.len > 0)
        buf_addf(out, "  tried: %s\n", r->tried.data);
    if (r->advice.len > 0)
        buf_addf(out, "  what to do: %s\n", r->advice.data);
}
