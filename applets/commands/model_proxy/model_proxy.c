/* model_proxy: a model provider on localhost, whose answers come from the host by files. */
#include "model_proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "relocate.h"
#include "proxy_calls.h"
#include "title.h"
#include "commands/exec/dial.h"
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

#define DOORS_MAX 8

struct options {
    const char *port, *directory;
    const char *listen[DOORS_MAX];
    size_t n_listen; /* 0: on the loopback */
    bool hosted;     /* answers are none of a directory's, or there are rules */
};

/* What it listens on; or the exit status where it can't. */
struct doors {
    int fds[DOORS_MAX];
    size_t n;
    int status;
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
        else if (option < SERVE_TO)
            return EXIT_USAGE;
        else if (take_host_option(o, option) != EXIT_OK)
            return EXIT_USAGE;
    }
    return optind < argc ? usage_unknown(argv[0], "argument", argv[optind], NULL) : EXIT_OK;
}

static const char *variable(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

/* -1: no port. 0 lets the system choose. */
static int port_number(const char *text)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    return *text < '0' || *text > '9' || *end || errno || n > 65535 ? -1 : (int)n;
}

/* A port is had also where nobody gets to it. Nothing is sent: a datagram's socket looks for a way only. */
static int can_be_reached(const struct sockaddr_in *address)
{
    int fd FD_AUTO = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? 0 : connect(fd, (const struct sockaddr *)address, sizeof *address);
}

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un path;
};

/* Listens on the loopback's address of that family; *port becomes the one that it is. -1 with errno. */
static int listen_at(int family, int *port)
{
    union address a = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof a.v4;
    int on = 1, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (family == AF_INET6) {
        a = (union address){.v6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback}};
        size = sizeof a.v6;
    }
    a.v4.sin_port = htons((uint16_t)*port); /* at the same place in both */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, &a.any, size) < 0 || listen(fd, SOMAXCONN) < 0 || getsockname(fd, &a.any, &size) < 0 ||
        (family == AF_INET && can_be_reached(&a.v4) < 0)) {
        io_close(&fd);
        return -1;
    }
    *port = ntohs(a.v4.sin_port);
    return fd;
}

/* Both addresses by which a client may take localhost. -1, and it was said why. */
static int listen_locally(struct doors *d, const char *port_word)
{
    int port = port_number(port_word);
    if (port < 0) {
        d->status = usage_error("model_proxy", "no port: '%s'; give a number from 0 to 65535", port_word);
        return -1;
    }
    d->fds[0] = listen_at(AF_INET, &port);
    const char *host = "127.0.0.1";
    if (d->fds[0] >= 0) {
        d->n = 1;
        d->fds[1] = listen_at(AF_INET6, &port);
        d->n += d->fds[1] >= 0;
        if (d->fds[1] >= 0 || errno != EADDRINUSE) /* most often there is no such address */
            return 0;
        host = "[::1]";
    }
    d->status = applet_failed("model_proxy", "can't listen on %s:%d: %s%s", host, port, err_text(errno),
                              errno == EADDRINUSE    ? "; give another with --port (0: any that is free)"
                              : errno == ENETUNREACH ? "; the loopback interface is down (ip link set lo up)"
                                                     : "");
    return -1;
}

static int listen_where(struct doors *d, const struct options *o)
{
    struct err err;
    for (; d->n < o->n_listen; d->n++) {
        d->fds[d->n] = dial_listen(o->listen[d->n], &err);
        if (d->fds[d->n] < 0) {
            d->status = applet_failed("model_proxy", "%s", err.msg);
            return -1;
        }
    }
    return 0;
}

/* Where it listens, for who started it; of the loopback once. */
static void tell(const struct doors *d, bool locally)
{
    for (size_t i = 0; i < (locally ? 1 : d->n); i++) {
        struct buf text BUF_AUTO = BUF_INIT;
        proxy_put_address(d->fds[i], &text);
        printf("Server running on %s\n", buf_str(&text));
    }
    if (fflush(stdout) != 0) { /* nobody reads it: the proxy serves all the same */
        clearerr(stdout);
    }
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

static int serve(struct proxy *proxy, const struct doors *d, bool locally)
{
    struct proxy_server *servers[DOORS_MAX];
    proxy->failed = on_failed;
    proxy->arg = proxy;
    for (size_t i = 0; i < d->n; i++)
        servers[i] = proxy_server_new(proxy->loop, d->fds[i], proxy_handle, proxy);
    loop_on_signal(proxy->loop, on_signal, proxy);
    tell(d, locally);  /* only now: whoever reads it may end us at once */
    mem_let_code_go(); /* most of the time it waits */
    int status = loop_run(proxy->loop);
    for (size_t i = 0; i < d->n; i++)
        proxy_server_free(servers[i]);
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
    if (!proxy.loop || code_unpack(CODE_proxy, &err) < 0)
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
    int status = take_options(argc, argv, &o);
    if (status != EXIT_OK)
        return status;
    char *directory MEM_AUTO = o.directory ? mem_strdup(o.directory)
                               : instance  ? mem_printf(SERVICE "/%s", instance)
                                           : mem_strdup(SERVICE);
    if (o.n_listen > 0 ? listen_where(&d, &o) < 0 : listen_locally(&d, o.port) < 0)
        return d.status;
    status = begin(&d, directory, &o);
    for (size_t i = 0; i < o.n_listen; i++)
        if (o.listen[i][0] == '/')
            unlink(o.listen[i]);
    return status;
}

const struct applet model_proxy_applet = {
    .name = "model_proxy",
    .summary = "stand in for model providers, answered by the host",
    .run = model_proxy_main,
};
