#include "host/inject/inject_then.h"

#include <stdio.h>

#include "applet.h"
#include "host/inject/inject_one.h"
#include "host/inject/inject_report.h"

int inject_then(const char *applet, const struct inject_options *o, const struct target *t,
                int (*work)(void *arg, const char *applet, const struct target *t,
                            const struct inject_result *r),
                void *arg, int *interrupted)
{
    struct transport transport;
    struct inject_result r;
    struct err err;
    int status;
    if (interrupted)
        *interrupted = 0;
    if (transport_init(&transport, o->timeout_ms, &err) < 0)
        return applet_failed(applet, "%s", err.msg);
    inject_result_init(&r, t->text);
    if (inject_one(o, t, &transport, &r, NULL) == 0 && !transport.interrupted) {
        status = work(arg, applet, t, &r);
    } else {
        struct buf out BUF_AUTO = BUF_INIT;
        report_text(&r, applet, &out);
        fputs(out.data, stderr);
        status = r.failure.exit;
        if (interrupted)
            *interrupted = transport.interrupted;
    }
    inject_result_release(&r);
    transport_release(&transport);
    return status;
}
