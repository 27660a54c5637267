/* Asks a server on a Unix socket the same thing again and again, over connections that stay open.
 *
 * usage: httpload SOCKET CONNECTIONS REQUESTS IDLE
 *
 * Each connection sends its next request when the answer to the last is there; IDLE more do nothing. Every
 * answer must be as long as the first, which has to be a 200. Prints the nanoseconds for all requests, and
 * the median for one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char request[] =
    "POST / HTTP/1.1\r\nHost: toolbox\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n"
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"remote_version\"}";

struct connection {
    int fd;
    long got;
    long long sent_at;
};

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int dial(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
        die(path);
    return fd;
}

static void ask(struct connection *c)
{
    c->got = 0;
    c->sent_at = now();
    if (send(c->fd, request, sizeof request - 1, MSG_NOSIGNAL) != (ssize_t)sizeof request - 1)
        die("send");
}

/* The length of the first answer, head and body. */
static long first_answer(int fd)
{
    char text[4096];
    size_t n = 0;
    for (;;) {
        ssize_t got = read(fd, text + n, sizeof text - 1 - n);
        if (got <= 0)
            die("read");
        n += (size_t)got;
        text[n] = '\0';
        const char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "\r\nContent-Length: ");
        if (!end || !length)
            continue;
        long all = end + 4 - text + strtol(length + 18, NULL, 10);
        if (strncmp(text, "HTTP/1.1 200 ", 13) != 0 || !strstr(end, "\"result\"")) {
            fprintf(stderr, "no right answer: %s\n", text);
            exit(1);
        }
        if ((long)n >= all)
            return all;
    }
}

static int by_value(const void *a, const void *b)
{
    long long x = *(const long long *)a, y = *(const long long *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    struct rlimit files;
    static char data[65536];
    if (argc != 5)
        return 2;
    int n = atoi(argv[2]), requests = atoi(argv[3]), idle = atoi(argv[4]);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    for (int i = 0; i < idle; i++)
        dial(argv[1]);
    struct connection *c = calloc((size_t)n, sizeof *c);
    long long *times = calloc((size_t)requests, sizeof *times);
    int epoll = epoll_create1(0);
    long length = 0;
    for (int i = 0; i < n; i++) {
        c[i].fd = dial(argv[1]);
        ask(&c[i]);
        length = first_answer(c[i].fd);
        epoll_ctl(epoll, EPOLL_CTL_ADD, c[i].fd, &(struct epoll_event){.events = EPOLLIN, .data.ptr = &c[i]});
    }
    long long began = now();
    int asked = 0, done = 0;
    for (int i = 0; i < n && asked < requests; i++, asked++)
        ask(&c[i]);
    while (done < requests) {
        struct epoll_event events[64];
        int ready = epoll_wait(epoll, events, 64, 60000);
        if (ready <= 0)
            die("no answer");
        for (int i = 0; i < ready; i++) {
            struct connection *at = events[i].data.ptr;
            ssize_t got = read(at->fd, data, sizeof data);
            at->got += got;
            if (got <= 0 || at->got > length)
                die("wrong answer");
            if (at->got < length)
                continue;
            times[done++] = now() - at->sent_at;
            if (asked++ < requests)
                ask(at);
        }
    }
    long long all = now() - began;
    qsort(times, (size_t)requests, sizeof *times, by_value);
    printf("%lld %lld\n", all, times[requests / 2]);
    free(times);
    free(c);
    return 0;
}
