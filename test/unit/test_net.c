/* Connections over this machine's own loopback, and name servers in a network of the check's own. */
#include "support.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "io.h"
#include "net.h"

static struct err err;

static struct sockaddr_in address_of(const char *ip, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    CHECK(inet_pton(AF_INET, ip, &a.sin_addr) == 1);
    return a;
}

/* A socket that listens there, at a port that is free; its port as text. */
static int listen_at(const char *ip, int backlog, char port[8])
{
    struct sockaddr_in a = address_of(ip, 0);
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0)
        cannot("no loopback");
    CHECK(listen(fd, backlog) == 0 && getsockname(fd, (struct sockaddr *)&a, &n) == 0);
    snprintf(port, 8, "%d", ntohs(a.sin_port));
    return fd;
}

static bool has_no_children(void)
{
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
}

static bool fails(const char *host, const char *port, int timeout_ms, const char *why)
{
    unsigned before = open_descriptors();
    err = (struct err){0};
    bool failed = net_connect(host, port, timeout_ms, &err) == -1 && err.code == ERR_TOOL;
    if (!failed || !strstr(err.msg, why))
        fprintf(stderr, "%s\n", err.msg);
    return failed && strstr(err.msg, why) && open_descriptors() == before && has_no_children();
}

static void check_connection(void *arg)
{
    (void)arg;
    char port[8], c;
    int listener = listen_at("127.0.0.1", 8, port);
    unsigned before = open_descriptors();
    int fd = net_connect("127.0.0.1", port, PATIENCE_MS, &err);
    CHECK(fd >= 0 && open_descriptors() == before + 1 && has_no_children());
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) && (fcntl(fd, F_GETFL) & O_NONBLOCK));
    int peer = accept(listener, NULL, NULL);
    CHECK(peer >= 0 && read(fd, &c, 1) == -1 && errno == EAGAIN);
    CHECK(net_wait(fd, POLLOUT, 0) == 0);
    CHECK(net_wait(fd, POLLIN, 0) == -1 && errno == ETIMEDOUT);
    CHECK(net_wait(fd, POLLIN, 20) == -1 && errno == ETIMEDOUT);
    CHECK(write(peer, "x", 1) == 1 && net_wait(fd, POLLIN, PATIENCE_MS) == 0 && read(fd, &c, 1) == 1);
    close(listener);
    CHECK(fails("127.0.0.1", port, PATIENCE_MS, "can't connect to 127.0.0.1 port"));
    CHECK(strstr(err.msg, "refused") && strstr(err.msg, port));
    CHECK(fails("127.0.0.1", "no-such-port", PATIENCE_MS, "there is no host '127.0.0.1'"));
}

static void a_host_is_connected_to(void **state)
{
    (void)state;
    in_child(check_connection, NULL);
}

static void on_signal(int signal)
{
    (void)signal;
}

/* A signal is no answer, and none ends the wait. */
static void check_signals(void *arg)
{
    (void)arg;
    int ends[2];
    pid_t waiting = getpid();
    struct sigaction action = {.sa_handler = on_signal};
    CHECK(pipe(ends) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 20; i++) {
            usleep(5000);
            kill(waiting, SIGUSR1);
        }
        _exit(write(ends[1], "x", 1) != 1);
    }
    CHECK(net_wait(ends[0], POLLIN, PATIENCE_MS) == 0);
    refuse_call(SYS_poll, EINVAL);
    CHECK(net_wait(ends[0], POLLIN, PATIENCE_MS) == -1 && errno == EINVAL);
}

static void signals_do_not_end_a_wait(void **state)
{
    (void)state;
    in_child(check_signals, NULL);
}

/* Whose queue is full answers nothing. */
static void check_silence(void *arg)
{
    (void)arg;
    char port[8];
    listen_at("127.0.0.1", 0, port);
    struct sockaddr_in a = address_of("127.0.0.1", atoi(port));
    for (int i = 0; i < 4; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        CHECK(fd >= 0 && (connect(fd, (struct sockaddr *)&a, sizeof a) == 0 || errno == EINPROGRESS));
    }
    CHECK(fails("127.0.0.1", port, 100, "timed out"));
}

static void silence_is_not_waited_for(void **state)
{
    (void)state;
    in_child(check_silence, NULL);
}

static void check_poverty(void *arg)
{
    if (arg) {
        refuse_call(SYS_pipe2, EMFILE);
    } else {
        refuse_call(SYS_clone, EAGAIN);
        refuse_call(SYS_clone3, EAGAIN);
#ifdef SYS_fork
        refuse_call(SYS_fork, EAGAIN);
#endif
    }
    CHECK(fails("127.0.0.1", "1", PATIENCE_MS, "can't find out the address of 127.0.0.1: "));
    CHECK(strstr(err.msg, arg ? "open files" : "unavailable"));
}

static void without_a_process_no_address_is_found(void **state)
{
    (void)state;
    in_child(check_poverty, &err);
    in_child(check_poverty, NULL);
}

static void check_no_socket(void *arg)
{
    (void)arg;
    refuse_call(SYS_socket, EACCES);
    CHECK(fails("127.0.0.1", "1", PATIENCE_MS, "can't connect to 127.0.0.1 port 1: Permission denied"));
}

static void without_a_socket_there_is_no_connection(void **state)
{
    (void)state;
    in_child(check_no_socket, NULL);
}

/* ---- names ---- */

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0);
    close(fd);
}

/* With a network of one's own, and files of names that say nothing of others. */
static void enter_own_network(bool up)
{
    struct ifreq lo = {.ifr_name = "lo"};
    if (unshare(CLONE_NEWNET) < 0)
        own_users(CLONE_NEWNET);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &lo) == 0);
    lo.ifr_flags |= IFF_UP;
    CHECK(!up || ioctl(fd, SIOCSIFFLAGS, &lo) == 0);
    close(fd);
    CHECK(mkdir("etc", 0755) == 0 || errno == EEXIST);
    enter_root(work_dir);
}

static void check_hosts(void *arg)
{
    static const char *const ips[] = {"127.0.0.1", "127.0.0.2"};
    (void)arg;
    enter_own_network(true);
    put("/etc/nsswitch.conf", "hosts: files\n");
    put("/etc/host.conf", "multi on\n");
    put("/etc/hosts", "127.0.0.1 two\n127.0.0.2 two\n");
    for (int i = 0; i < 2; i++) { /* whichever comes first */
        char port[8];
        int listener = listen_at(ips[i], 8, port);
        int fd = net_connect("two", port, PATIENCE_MS, &err);
        CHECK(fd >= 0);
        close(fd);
        close(listener);
        CHECK(fails("two", port, PATIENCE_MS, "can't connect to two"));
    }
    CHECK(fails("three", "1", PATIENCE_MS, "there is no host 'three'"));
    FILE *hosts = fopen("/etc/hosts", "w");
    CHECK(hosts);
    for (int i = 1; i <= 40; i++)
        fprintf(hosts, "127.0.0.%d many\n", i);
    CHECK(fclose(hosts) == 0);
    CHECK(fails("many", "1", PATIENCE_MS, "can't connect to many"));
}

static void every_address_is_tried(void **state)
{
    (void)state;
    in_child(check_hosts, NULL);
}

static void check_name_server(void *arg)
{
    bool there = arg != NULL;
    enter_own_network(there);
    put("/etc/nsswitch.conf", "hosts: dns\n");
    put("/etc/resolv.conf", "nameserver 127.0.0.1\n");
    if (there) {
        struct sockaddr_in a = address_of("127.0.0.1", 53);
        int silent = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        CHECK(silent >= 0 && bind(silent, (struct sockaddr *)&a, sizeof a) == 0);
    }
    CHECK(fails("some.example", "1", there ? 200 : PATIENCE_MS,
                there ? "no name server has answered in time" : "no name server answers"));
}

static void a_name_server_that_says_nothing_is_not_waited_for(void **state)
{
    (void)state;
    in_child(check_name_server, &err);
    in_child(check_name_server, NULL);
}

#define IN_DIR(name) cmocka_unit_test_setup_teardown(name, enter_work_dir, leave_work_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_is_connected_to),
        cmocka_unit_test(signals_do_not_end_a_wait),
        cmocka_unit_test(silence_is_not_waited_for),
        cmocka_unit_test(without_a_process_no_address_is_found),
        cmocka_unit_test(without_a_socket_there_is_no_connection),
        IN_DIR(every_address_is_tried),
        IN_DIR(a_name_server_that_says_nothing_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
