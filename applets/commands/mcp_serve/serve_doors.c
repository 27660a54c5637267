#include "serve_doors.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "applet.h"
#include "commands/exec/dial.h"
#include "commands/model_proxy/proxy_address.h"

static const char NAME[] = "mcp serve";

static const char *path_of(const char *where)
{
    return strncmp(where, "unix:", 5) == 0 ? where + 5 : where;
}

int doors_open(const struct serve_http_options *o, int *fds)
{
    struct err err;
    for (size_t i = 0; i < o->n; i++) {
        fds[i] = dial_listen(path_of(o->where[i]), &err);
        if (fds[i] < 0) {
            applet_failed(NAME, "%s", err.msg);
            return -1;
        }
        if (!o->token && !o->tls.ca && !proxy_is_local(fds[i])) {
            applet_failed(NAME,
                          "%s can be reached from elsewhere: give --token-file FILE or --token-env NAME, or "
                          "--tls-client-ca FILE",
                          o->where[i]);
            return -1;
        }
    }
    return 0;
}

bool door_has_tls(const struct serve_http_options *o, size_t i)
{
    return o->tls.cert && *path_of(o->where[i]) != '/';
}

void doors_tell(const struct serve_http_options *o, const int *fds)
{
    for (size_t i = 0; i < o->n; i++) {
        struct buf text BUF_AUTO = BUF_INIT;
        proxy_put_address(fds[i], &text);
        if (door_has_tls(o, i))
            buf_replace(&text, 0, 4, "https", 5);
        printf("Server running on %s%s\n", buf_str(&text), text.data[0] == 'u' ? "" : "/mcp");
    }
    fflush(stdout);
}

void doors_close(const struct serve_http_options *o)
{
    for (size_t i = 0; i < o->n; i++)
        if (*path_of(o->where[i]) == '/')
            unlink(path_of(o->where[i]));
}
