/* Asks a server on a Unix socket the same thing again and again, over connections that stay open.
 *
 * usage: httpload SOCKET CONNECTIONS REQUESTS IDLE
 *
 * Each connection sends its next request when the answer to the last is there. Every answer must be as long
 * as the first, which has to be a 200. With IDLE, every other REQUESTS of ROUNDS times as many are sent
 * beside so many connections that do nothing: what else goes on in the machine is then the same for both.
 * Prints the nanoseconds for all requests, the median for one, and the median for one beside idle
 * connections. */
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

enum { ROUNDS = 40 };

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

/* The connections that ask, and the length of an answer. */
struct load {
    int epoll, n;
    long length;
    struct connection *connections;
};

static void load_open(struct load *l, const char *path, int n)
{
    *l = (struct load){
        .epoll = epoll_create1(0), .n = n, .connections = calloc((size_t)n, sizeof *l->connections)};
    for (int i = 0; i < n; i++) {
        struct connection *c = &l->connections[i];
        c->fd = dial(path);
        ask(c);
        l->length = first_answer(c->fd);
        epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &(struct epoll_event){.events = EPOLLIN, .data.ptr = c});
    }
}

/* `times`: of each request. */
static void load_run(struct load *l, int requests, long long *times)
{
    static char data[65536];
    int asked = 0, done = 0;
    for (; asked < l->n && asked < requests; asked++)
        ask(&l->connections[asked]);
    while (done < requests) {
        struct epoll_event events[64];
        int ready = epoll_wait(l->epoll, events, 64, 60000);
        if (ready <= 0)
            die("no answer");
        for (int i = 0; i < ready; i++) {
            struct connection *at = events[i].data.ptr;
            ssize_t got = read(at->fd, data, sizeof data);
            at->got += got;
            if (got <= 0 || at->got > l->length)
                die("wrong answer");
            if (at->got < l->length)
                continue;
            times[done++] = now() - at->sent_at;
            if (asked++ < requests)
                ask(at);
        }
    }
}

static long long median(long long *times, int n)
{
    qsort(times, (size_t)n, sizeof *times, by_value);
    return times[n / 2];
}

/* Beside idle connections and without them by turns; each turn begins with some that do not count, while the
 * server takes the connections or lets them go. */
static void by_turns(struct load *l, const char *path, int requests, int idle)
{
    long long *without = calloc((size_t)requests * ROUNDS, sizeof *without);
    long long *beside = calloc((size_t)requests * ROUNDS, sizeof *beside);
    int *fds = calloc((size_t)idle, sizeof *fds);
    for (int round = 0; round < ROUNDS; round++) {
        load_run(l, requests, without + (size_t)round * requests);
        load_run(l, requests, without + (size_t)round * requests);
        for (int i = 0; i < idle; i++)
            fds[i] = dial(path);
        load_run(l, requests, beside + (size_t)round * requests);
        load_run(l, requests, beside + (size_t)round * requests);
        for (int i = 0; i < idle; i++)
            close(fds[i]);
    }
    printf("0 %lld %lld\n", median(without, requests * ROUNDS), median(beside, requests * ROUNDS));
    free(without);
    free(beside);
    free(fds);
}

int main(int argc, char **argv)
{
    struct rlimit files;
    struct load l;
    if (argc != 5)
        return 2;
    int n = atoi(argv[2]), requests = atoi(argv[3]), idle = atoi(argv[4]);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    load_open(&l, argv[1], n);
    if (idle > 0) {
        by_turns(&l, argv[1], requests, idle);
    } else {
        long long *times = calloc((size_t)requests, sizeof *times), began = now();
        load_run(&l, requests, times);
        long long all = now() - began;
        printf("%lld %lld 0\n", all, median(times, requests));
        free(times);
    }
    free(l.connections);
    return 0;
}
