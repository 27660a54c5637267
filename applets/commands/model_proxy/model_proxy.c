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
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "proxy_calls.h"
#include "title.h"

#define SERVICE "/var/tmp/sandbox-services/bridge_model_service"
#define PORT "13131"

static const char usage[] =
    "Usage: toolbox model_proxy [--port PORT] [--directory DIR]\n"
    "\n"
    "Stands in for model providers on 127.0.0.1: a request becomes a file, which the\n"
    "evaluation on the host answers with another, and the answer goes back in the\n"
    "provider's own form, as a stream where that was asked for. What programs in the\n"
    "container need to be told:\n"
    "\n"
    "  OPENAI_BASE_URL=http://localhost:" PORT "/v1\n"
    "  ANTHROPIC_BASE_URL=http://localhost:" PORT "\n"
    "  GOOGLE_GEMINI_BASE_URL=http://localhost:" PORT "\n"
    "\n"
    "Served: /v1/chat/completions, /v1/responses, /v1/messages, /v1/models,\n"
    "/v1beta/models/MODEL:ACTION, and tools of the host by MCP: /mcp/SERVER.\n"
    "\n"
    "  --port PORT      where to listen (default: $BRIDGE_MODEL_SERVICE_PORT,\n"
    "                   else " PORT "; 0: any that is free)\n"
    "  --directory DIR  where requests/ and responses/ are; default:\n"
    "                   " SERVICE ",\n"
    "                   and in it $BRIDGE_MODEL_SERVICE_INSTANCE where that is set\n"
    "  -h, --help       this text\n"
    "\n"
    "It runs in the foreground until TERM. When the host fails a request it ends with\n"
    "status 1 and the reason on standard error: a model that can't be had is not to\n"
    "be asked again and again.\n"
    "\n"
    "Example:\n"
    "  toolbox model_proxy --port 8080 --directory /tmp/service\n";

struct options {
    const char *port, *directory;
};

/* EXIT_OK, or the exit status. */
static int take_options(int argc, char **argv, struct options *o)
{
    static const char *const words[] = {"--port", "--directory", NULL};
    static const struct option options[] = {
        {"port", required_argument, NULL, 'p'}, {"directory", required_argument, NULL, 'd'}, {0}};
    for (int option; (option = usage_option(argv[0], argc, argv, ":", options, words)) >= 0;) {
        if (option == 'p')
            o->port = optarg;
        else if (option == 'd')
            o->directory = optarg;
        else
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

/* Listens; *port becomes the one that it is. -1 with errno. */
static int listen_at(int *port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, SOMAXCONN) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0 || can_be_reached(&address) < 0) {
        io_close(&fd);
        return -1;
    }
    *port = ntohs(address.sin_port);
    return fd;
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

static int serve(int listen_fd, const char *directory)
{
    struct err err;
    struct proxy proxy = {.loop = loop_new(&err)};
    if (!proxy.loop) {
        close(listen_fd);
        return applet_failed("model_proxy", "%s", err.msg);
    }
    proxy.service = service_new(proxy.loop, directory);
    proxy.headers = title_is_inspect();
    proxy.failed = on_failed;
    proxy.arg = &proxy;
    struct proxy_server *server = proxy_server_new(proxy.loop, listen_fd, proxy_handle, &proxy);
    loop_on_signal(proxy.loop, on_signal, &proxy);
    int status = loop_run(proxy.loop);
    proxy_server_free(server);
    service_free(proxy.service);
    loop_free(proxy.loop);
    return status;
}

static int model_proxy_main(int argc, char **argv)
{
    const char *instance = variable("BRIDGE_MODEL_SERVICE_INSTANCE", NULL);
    struct options o = {.port = variable("BRIDGE_MODEL_SERVICE_PORT", PORT)};
    int status = take_options(argc, argv, &o);
    if (status != EXIT_OK)
        return status;
    int port = port_number(o.port);
    if (port < 0)
        return usage_error("model_proxy", "no port: '%s'; give a number from 0 to 65535", o.port);
    char *directory MEM_AUTO = o.directory ? mem_strdup(o.directory)
                               : instance  ? mem_printf(SERVICE "/%s", instance)
                                           : mem_strdup(SERVICE);
    int fd = listen_at(&port);
    if (fd < 0)
        return applet_failed("model_proxy", "can't listen on 127.0.0.1:%d: %s%s", port, err_text(errno),
                             errno == EADDRINUSE    ? "; give another with --port (0: any that is free)"
                             : errno == ENETUNREACH ? "; the loopback interface is down (ip link set lo up)"
                                                    : "");
    printf("Server running on http://127.0.0.1:%d\n", port);
    if (fflush(stdout) != 0) { /* nobody reads it: the proxy serves all the same */
        clearerr(stdout);
    }
    if (access(directory, F_OK) < 0) /* it may come yet */
        fprintf(stderr,
                "toolbox model_proxy: %s is not there: nothing is answered before the host has made it\n",
                directory);
    return serve(fd, directory);
}

const struct applet model_proxy_applet = {
    .name = "model_proxy",
    .summary = "stand in for model providers, answered by the host",
    .usage = usage,
    .run = model_proxy_main,
};
