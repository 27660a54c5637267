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
    long long sum = r->cost.whole_us;
    for (int s = 0; s < N_STEPS; s++)
        sum += r->cost.us[s] > 0 ? r->cost.us[s] : 0;
    return sum;
}

static void put_steps(const struct inject_result *r, struct buf *out)
{
    struct buf steps BUF_AUTO = BUF_INIT;
    for (int s = 0; s < N_STEPS; s++) {
        if (r->cost.us[s] < 0)
            continue;
        buf_addc(&steps, steps.len > 0 ? ',' : '[');
        buf_addc(&steps, '{');
        json_member_string(&steps, "step", inject_steps[s]);
        json_key(&steps, "ms");
        put_ms(&steps, r->cost.us[s]);
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
    json_member_int(out, "exit", r->ok ? 0 : r->failure.exit);
    if (!r->ok) {
        json_member_string(out, "step", inject_steps[r->failure.step]);
        put_text(out, "message", &r->failure.message);
        put_text(out, "tried", &r->failure.tried);
        put_text(out, "advice", &r->failure.advice);
    }
    put_text(out, "about", &r->found.about);
    json_member_string(out, "arch", *r->found.arch ? r->found.arch : NULL);
    if (r->ok) {
        put_text(out, "path", &r->placed.path);
        json_member_string(out, "state", r->placed.state);
        json_member_string(out, "sha256", *r->placed.sha256 ? r->placed.sha256 : NULL);
        json_member_int(out, "size", (long long)r->placed.size);
        json_member_string(out, "uid", *r->found.uid ? r->found.uid : NULL);
        put_text(out, "server", &r->server);
        put_text(out, "ended", &r->others.ended);
        put_text(out, "moved", &r->others.moved);
        put_text(out, "stayed", &r->others.stayed);
    }
    json_member_int(out, "calls", r->cost.calls);
    json_member_int(out, "sent", (long long)r->cost.sent);
    put_steps(r, out);
    buf_addc(out, '}');
}

/* What there is to say about a step that went well. */
static void put_detail(const struct inject_result *r, enum inject_step step, struct buf *out)
{
    switch (step) {
    case STEP_RECON:
        buf_adds(out, buf_str(&r->found.about));
        if (*r->found.uid)
            buf_addf(out, ", uid %s", r->found.uid);
        break;
    case STEP_CHOICE:
        buf_addf(out, "%s, %zu bytes", r->found.arch, r->placed.size);
        break;
    case STEP_PLACING:
        buf_adds(out, buf_str(&r->placed.path));
        break;
    case STEP_PROOF:
        buf_addf(out, "sha256 %.16s…", r->placed.sha256);
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
        if (r->cost.us[s] < 0)
            continue;
        put_ms(&ms, r->cost.us[s]);
        buf_addf(out, "  %-8s %8s ms  ", inject_steps[s], buf_str(&ms));
        put_detail(r, (enum inject_step)s, out);
        buf_addc(out, '\n');
    }
    buf_addf(out, "  %d call%s of the runtime%s%s, %zu bytes sent\n", r->cost.calls,
             r->cost.calls == 1 ? "" : "s", transport_over ? " over " : "",
             transport_over ? transport_over : "", r->cost.sent);
}

void report_text(const struct inject_result *r, const char *applet, struct buf *out)
{
    struct buf target BUF_AUTO = BUF_INIT;
    transport_show(&target, r->target, strlen(r->target), 1000);
    if (r->ok) {
        buf_addf(out, "%s is %s: ", buf_str(&target), *r->placed.sha256 ? "ready" : "clean");
        if (r->placed.path.len > 0)
            buf_addf(out, "%s (%s", r->placed.path.data, r->placed.state);
        else
            buf_addf(out, "%s", r->placed.state);
        if (r->others.ended.len > 0)
            buf_addf(out, ", ended %s", r->others.ended.data);
        if (r->others.moved.len > 0)
            buf_addf(out, ", moved %s", r->others.moved.data);
        if (r->others.stayed.len > 0)
            buf_addf(out, ", stays in its build: %s", r->others.stayed.data);
        if (*r->placed.sha256) {
            buf_adds(out, ", ");
            put_ms(out, total_us(r));
            buf_adds(out, " ms");
        }
        buf_adds(out, r->placed.path.len > 0 ? ")\n" : "\n");
        return;
    }
    buf_addf(out, "toolbox %s: %s: %s: %s\n", applet, buf_str(&target), inject_steps[r->failure.step],
             buf_str(&r->failure.message));
    if (r->failure.tried.len > 0)
        buf_addf(out, "  tried: %s\n", r->failure.tried.data);
    if (r->failure.advice.len > 0)
        buf_addf(out, "  what to do: %s\n", r->failure.advice.data);
}
