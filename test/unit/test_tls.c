/* TLS as far as a peer that knows none of it lets it come: whom to trust, and what is wrong with the other.
 */
#include "support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "io.h"
#include "tls.h"

#define HOST "127.0.0.1"

/* Of somebody whom nobody meets. */
static const char certificate[] = "-----BEGIN CERTIFICATE-----\n"
                                  "MIIBeDCCAR2gAwIBAgIUTr0tMZd/+MptZoKb6RmMFOUAIYkwCgYIKoZIzj0EAwIw\n"
                                  "ETEPMA0GA1UEAwwGbm9ib2R5MB4XDTI2MTEyODE5MTU0MFoXDTM2MTEyNTE5MTU0\n"
                                  "MFowETEPMA0GA1UEAwwGbm9ib2R5MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n"
                                  "leIkOEbfSdi7AjkgqdNOBU0G9wxE+2/G5EqgppHkFVPAVQmYkeHErA5ZQjOEyNu9\n"
                                  "5QttJ6L2HutM5ck0GPlYN6NTMFEwHQYDVR0OBBYEFAuYrPcyUcCGOMfvHiiI7s9K\n"
                                  "IjrhMB8GA1UdIwQYMBaAFAuYrPcyUcCGOMfvHiiI7s9KIjrhMA8GA1UdEwEB/wQF\n"
                                  "MAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhAOYlIGZkWmlaRxmhnWom9P1w48Oxo7PV\n"
                                  "r62AgjF4UbJ6AiEAllDGeyEP8cMLvZtHTB1w0pW8fyoB2vgYQL8MDlgxHS0=\n"
                                  "-----END CERTIFICATE-----\n";

static char dir[64];
static struct err err;

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0);
    close(fd);
}

static int set_up(void **state)
{
    (void)state;
    int result = enter_dir(dir);
    put("trust.pem", certificate);
    put("none.pem", "no certificate\n");
    unsetenv("SSL_CERT_FILE");
    return result;
}

static int tear_down(void **state)
{
    (void)state;
    return leave_dir(dir);
}

static bool is_refused(const char *host, const char *port, const char *trust, int timeout_ms, const char *why)
{
    unsigned before = open_descriptors();
    err = (struct err){0};
    bool refused =
        !tls_open(host, port, trust, timeout_ms, &err) && err.code == ERR_TOOL && strstr(err.msg, why);
    if (!refused)
        fprintf(stderr, "%s\n", err.msg);
    return refused && open_descriptors() == before;
}

/* ---- trust ---- */

static void there_is_no_way_without_trust(void **state)
{
    (void)state;
    assert_true(is_refused(HOST, "1", "missing.pem", 1000, "can't read the certificates in missing.pem"));
    assert_true(is_refused(HOST, "1", "none.pem", 1000, "there is no certificate in none.pem"));
    setenv("SSL_CERT_FILE", "none.pem", 1);
    assert_true(is_refused(HOST, "1", NULL, 1000, "there is no certificate in none.pem"));
    assert_true(is_refused(HOST, "1", "missing.pem", 1000, "missing.pem")); /* what is named goes first */
    assert_true(is_refused(HOST, "no-port", "trust.pem", 1000, "there is no host"));
    setenv("SSL_CERT_FILE", "trust.pem", 1);
    assert_true(is_refused(HOST, "no-port", NULL, 1000, "there is no host"));
    char name[400];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_true(is_refused(name, "1", "trust.pem", 1000, "can't be the name of a host"));
    tls_close(NULL);
}

static void check_stores(void *arg)
{
    (void)arg;
    enter_root(dir);
    CHECK(is_refused(HOST, "no-port", NULL, 1000, "--ca"));
    setenv("SSL_CERT_FILE", "", 1);
    CHECK(is_refused(HOST, "no-port", NULL, 1000, "--ca"));
    CHECK(mkdir("/etc", 0755) == 0 && mkdir("/etc/ssl", 0755) == 0);
    put("/etc/ssl/cert.pem", certificate); /* the last of the places */
    CHECK(is_refused(HOST, "no-port", NULL, 1000, "there is no host"));
}

static void the_systems_store_is_looked_for(void **state)
{
    (void)state;
    in_child(check_stores, NULL);
}

/* ---- peers ---- */

struct peer {
    const char *text; /* what it says to whatever comes; NULL: nothing */
    size_t n;
    const char *why;
    int timeout_ms;
    bool slowly; /* byte by byte, for ever */
};

static pid_t serve(const struct peer *peer, char port[8])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 8) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    snprintf(port, 8, "%d", ntohs(a.sin_port));
    pid_t pid = fork();
    if (pid == 0) {
        char data[4096];
        alarm(4 * PATIENCE_MS / 1000);
        int one = accept(fd, NULL, NULL);
        if (!peer->text)
            pause();
        if (read(one, data, sizeof data) <= 0)
            _exit(1);
        for (size_t i = 0; peer->slowly && send(one, peer->text + i % peer->n, 1, MSG_NOSIGNAL) == 1; i++)
            usleep(10000);
        if (!peer->slowly && io_write_all(one, peer->text, peer->n) == 0)
            shutdown(one, SHUT_WR);
        while (read(one, data, sizeof data) > 0)
            continue;
        _exit(0);
    }
    close(fd);
    return pid;
}

#define SAYS(text) text, sizeof(text) - 1

static void what_is_no_tls_is_told(void **state)
{
    (void)state;
    static const struct peer peers[] = {
        {SAYS("HTTP/1.1 400 Bad Request\r\n\r\n"), "TLS failed", PATIENCE_MS, false},
        {SAYS(""), "the connection was cut", PATIENCE_MS, false},
        {SAYS("\x15\x03\x03\x00\x02\x02\x28"), "has refused the connection", PATIENCE_MS, false},
        {NULL, 0, "silent for too long", 300, false},
        {SAYS("\x16\x03\x03\x3f\xff"), "silent for too long", 300, true}, /* a record that never ends */
    };
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        char port[8];
        pid_t pid = serve(&peers[i], port);
        bool refused = is_refused(HOST, port, "trust.pem", peers[i].timeout_ms, peers[i].why);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_true(refused);
        assert_non_null(strstr(err.msg, "no secure connection to " HOST));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(there_is_no_way_without_trust),
        TEST(the_systems_store_is_looked_for),
        TEST(what_is_no_tls_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
