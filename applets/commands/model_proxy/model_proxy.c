/* model_proxy: a model provider on localhost, whose answers come from the host by files. */
#include "model_proxy.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "relocate.h"
#include "proxy_background.h"
#include "proxy_doors.h"
#include "title.h"
#include "serve_model.h"

#ifdef TOOLBOX_GUEST /* which answers by a directory alone */
#undef SERVE_OPTIONS
#undef SERVE_OPTION_NAMES
#define SERVE_OPTIONS
#define SERVE_OPTION_NAMES
#define serve_model_option(option, value) ((void)(option), EXIT_USAGE)
#define serve_model_begin(proxy, answers) EXIT_OK
#define serve_model_end() ((void)0)
#endif

#define SERVICE "/var/tmp/sandbox-services/bridge_model_service"
#define PORT "13131"

#define REST_MS 1000

struct options {
    const char *port, *directory;
    const char *listen[DOORS_MAX + 1]; /* and NULL */
    size_t n_listen;                   /* 0: on the loopback */
    bool hosted;                       /* answers are none of a directory's, or there are rules */
};

static int take_host_option(struct options *o, int option)
{
    struct err err;
    if (!o->hosted && code_unpack(CODE_serve, &err) < 0)
        return applet_failed("model_proxy", "%s", err.msg);
    o->hosted = true;
    return serve_model_option((enum serve_option)option, optarg);
}

/* EXIT_OK, or the exit status. */
static int take_options(int argc, char **argv, struct options *o)
{
    static const char *const words[] = {"--port", "--directory", "--listen", SERVE_OPTION_NAMES NULL};
    static const struct option options[] = {{"port", required_argument, NULL, 'p'},
                                            {"directory", required_argument, NULL, 'd'},
                                            {"listen", required_argument, NULL, 'l'},
                                            SERVE_OPTIONS{0}};
    for (int option; (option = usage_option(argv[0], argc, argv, ":", options, words)) >= 0;) {
        if (option == 'p')
            o->port = optarg;
        else if (option == 'd')
            o->directory = optarg;
        else if (option == 'l' && o->n_listen == DOORS_MAX)
            return usage_error(argv[0], "--listen can be given %d times", DOORS_MAX);
        else if (option == 'l')
            o->listen[o->n_listen++] = optarg;
        else if (option < SERVE_TO || take_host_option(o, option) != EXIT_OK)
            return EXIT_USAGE;
    }
    return optind < argc ? usage_unknown(argv[0], "argument", argv[optind], NULL) : EXIT_OK;
}

static const char *variable(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static void on_failed(void *arg, const char *reason)
{
    struct proxy *proxy = arg;
    applet_failed("model_proxy", "the host failed a request: %s", reason);
    loop_stop(proxy->loop, EXIT_FAILED);
}

static void on_signal(void *arg, int signal)
{
    struct proxy *proxy = arg;
    (void)signal;
    loop_stop(proxy->loop, EXIT_OK);
}

/* Most of the time it waits, and then needs little of its code. */
static void on_rest(void *arg)
{
    (void)arg;
    mem_let_code_go();
}

static void handle(void *arg, struct proxy_conn *conn, const struct proxy_request *r)
{
    struct proxy *proxy = arg;
    loop_timer_set(proxy->rest, REST_MS);
    proxy_handle(proxy, conn, r);
}

static int serve(struct proxy *proxy, const struct doors *d, bool locally)
{
    struct proxy_server *servers[DOORS_MAX];
    proxy->rest = loop_timer(proxy->loop, REST_MS, on_rest, NULL);
    proxy->failed = on_failed;
    proxy->arg = proxy;
    for (size_t i = 0; i < d->n; i++)
        servers[i] = proxy_server_new(proxy->loop, d->fds[i], handle, proxy);
    loop_on_signal(proxy->loop, on_signal, proxy);
    proxy_doors_tell(d, locally); /* only now: whoever reads it may end us at once */
    int status = loop_run(proxy->loop);
    for (size_t i = 0; i < d->n; i++)
        proxy_server_free(servers[i]);
    background_end(proxy);
    loop_drop(&proxy->rest);
    return status;
}

/* With the answers of the service in a directory. */
static int serve_directory(struct proxy *proxy, const struct doors *d, const char *directory, bool locally)
{
    struct service *service = service_new(proxy->loop, directory);
    proxy->source = service_source(service);
    proxy->headers = title_is_inspect();
    if (access(directory, F_OK) < 0) /* it may come yet */
        fprintf(stderr,
                "toolbox model_proxy: %s is not there: nothing is answered before the host has made it\n",
                directory);
    int status = serve(proxy, d, locally);
    service_free(service);
    return status;
}

static int begin(const struct doors *d, const char *directory, const struct options *o)
{
    struct err err;
    bool answers = false, locally = o->n_listen == 0;
    struct proxy proxy = {.loop = loop_new(&err)};
    if (!proxy.loop)
        return applet_failed("model_proxy", "%s", err.msg);
    int status = o->hosted ? serve_model_begin(&proxy, &answers) : EXIT_OK;
    if (status == EXIT_OK)
        status = answers ? serve(&proxy, d, locally) : serve_directory(&proxy, d, directory, locally);
    if (o->hosted)
        serve_model_end();
    loop_free(proxy.loop);
    return status;
}

static int model_proxy_main(int argc, char **argv)
{
    const char *instance = variable("BRIDGE_MODEL_SERVICE_INSTANCE", NULL);
    struct options o = {.port = variable("BRIDGE_MODEL_SERVICE_PORT", PORT)};
    struct doors d = {.n = 0};
    struct err err;
    int status = take_options(argc, argv, &o);
    if (status != EXIT_OK)
        return status;
    if (code_unpack(CODE_http, &err) < 0 || code_unpack(CODE_proxy, &err) < 0)
        return applet_failed("model_proxy", "%s", err.msg);
    char *directory MEM_AUTO = o.directory ? mem_strdup(o.directory)
                               : instance  ? mem_printf(SERVICE "/%s", instance)
                                           : mem_strdup(SERVICE);
    status =
        o.n_listen > 0 ? proxy_doors_open(&d, o.listen, o.n_listen) : proxy_doors_open_locally(&d, o.port);
    if (status != EXIT_OK)
        return status;
    status = begin(&d, directory, &o);
    for (const char *const *door = o.listen; *door; door++)
        if (**door == '/')
            unlink(*door);
    return status;
}

const struct applet model_proxy_applet = {
    .name = "model_proxy",
    .summary = "stand in for model providers, answered by the host",
    .run = model_proxy_main,
};
