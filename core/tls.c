#include "tls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <mbedtls/ssl.h>
#include <psa/crypto.h>

#include "buf.h"
#include "io.h"
#include "mem.h"
#include "net.h"
#include "random.h"

#define TRUST_MAX (8u << 20)

struct tls {
    int fd, timeout_ms;
    long long deadline; /* of the step under way, ms */
    mbedtls_ssl_context ssl;
    mbedtls_ssl_config config;
    mbedtls_x509_crt trust;
};

/* mbedtls asks for this one by name, and by pointer. */
psa_status_t mbedtls_psa_external_get_random(mbedtls_psa_external_random_context_t *context, uint8_t *out,
                                             size_t size, size_t *length)
{
    (void)context;
    *length = random_bytes(out, size) == 0 ? size : 0;
    return *length == size ? PSA_SUCCESS : PSA_ERROR_INSUFFICIENT_ENTROPY;
}

static int give_random(void *arg, unsigned char *out, size_t size)
{
    (void)arg;
    return random_bytes(out, size) == 0 ? 0 : MBEDTLS_ERR_SSL_INTERNAL_ERROR;
}

/* ---- the socket ---- */

static int wait_for_peer(struct tls *t, short events)
{
    long long left = t->deadline ? t->deadline - now_ms() : t->timeout_ms;
    if (left > t->timeout_ms)
        left = t->timeout_ms;
    if (net_wait(t->fd, events, left > 0 ? (int)left : 0) == 0)
        return 0;
    return errno == ETIMEDOUT ? MBEDTLS_ERR_SSL_TIMEOUT : MBEDTLS_ERR_SSL_INTERNAL_ERROR;
}

static int moved(struct tls *t, ssize_t n, short events)
{
    if (n >= 0)
        return (int)n;
    if (errno == EINTR)
        return events == POLLIN ? MBEDTLS_ERR_SSL_WANT_READ : MBEDTLS_ERR_SSL_WANT_WRITE;
    if (errno != EAGAIN)
        return MBEDTLS_ERR_SSL_CONN_EOF;
    int status = wait_for_peer(t, events);
    return status != 0 ? status : events == POLLIN ? MBEDTLS_ERR_SSL_WANT_READ : MBEDTLS_ERR_SSL_WANT_WRITE;
}

static int send_some(void *arg, const unsigned char *data, size_t n)
{
    struct tls *t = arg;
    return moved(t, send(t->fd, data, n, MSG_NOSIGNAL), POLLOUT);
}

static int receive_some(void *arg, unsigned char *out, size_t n)
{
    struct tls *t = arg;
    return moved(t, recv(t->fd, out, n, 0), POLLIN);
}

/* ---- trust ---- */

static const char *const stores[] = {
    "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Alpine, Arch, Gentoo, Wolfi */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora, CentOS, Amazon Linux */
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem", /* openSUSE */
    "/etc/ssl/cert.pem",
};

static int load_trust(struct tls *t, const char *path, struct err *err)
{
    struct buf text BUF_AUTO = {.max = TRUST_MAX};
    if (io_read_file(AT_FDCWD, path, &text) < 0)
        return err_sys(err, ERR_TOOL, errno, "can't read the certificates in %s", path);
    /* PEM is parsed with its NUL. Certificates that it can't make anything of are passed over in a bundle. */
    bool pem = strstr(buf_str(&text), "-----BEGIN") != NULL;
    mbedtls_x509_crt_parse(&t->trust, (const unsigned char *)buf_str(&text), text.len + (pem ? 1 : 0));
    if (t->trust.version == 0)
        return err_set(err, ERR_TOOL, "there is no certificate in %s", path);
    return 0;
}

static int find_trust(struct tls *t, const char *path, struct err *err)
{
    const char *variable = getenv("SSL_CERT_FILE");
    if (!path && variable && *variable)
        path = variable;
    if (path)
        return load_trust(t, path, err);
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++)
        if (load_trust(t, stores[i], err) == 0)
            return 0;
    return err_set(err, ERR_TOOL,
                   "this system has no store of trusted certificates where one would be (%s and others): "
                   "name a file with --ca",
                   stores[0]);
}

/* ---- what went wrong ---- */

static int explain_certificate(uint32_t flags, const char *host, struct err *err)
{
    static const struct {
        uint32_t flag;
        const char *text;
    } reasons[] = {
        {MBEDTLS_X509_BADCERT_EXPIRED, "it has expired"},
        {MBEDTLS_X509_BADCERT_FUTURE, "it isn't valid yet (or this machine's clock is wrong)"},
        {MBEDTLS_X509_BADCERT_CN_MISMATCH, "it is for another host"},
        {MBEDTLS_X509_BADCERT_NOT_TRUSTED,
         "nobody in the trust store vouches for it ($SSL_CERT_FILE names another)"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (flags & reasons[i].flag)
            return err_set(err, ERR_TOOL, "the certificate of %s is refused: %s", host, reasons[i].text);
    return err_set(
        err, ERR_TOOL,
        "the certificate of %s is refused: its keys, digests or use aren't those of a good one (%x)", host,
        (unsigned)flags);
}

static int explain(int status, struct err *err)
{
    switch (status) {
    case MBEDTLS_ERR_SSL_TIMEOUT:
        return err_set(err, ERR_TOOL, "the peer has been silent for too long");
    case MBEDTLS_ERR_SSL_CONN_EOF:
        return err_set(err, ERR_TOOL, "the connection was cut");
    case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE:
        return err_set(err, ERR_TOOL, "the peer has refused the connection (a TLS alert)");
    default:
        return err_set(err, ERR_TOOL,
                       "TLS failed (mbedtls error -0x%04x): the peer speaks something else, or too old a TLS",
                       (unsigned)-status);
    }
}

/* ---- the connection ---- */

static int prepare(struct tls *t, const char *host, const char *trust, struct err *err)
{
    mbedtls_ssl_init(&t->ssl);
    mbedtls_ssl_config_init(&t->config);
    mbedtls_x509_crt_init(&t->trust);
    if (psa_crypto_init() != PSA_SUCCESS ||
        mbedtls_ssl_config_defaults(&t->config, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM,
                                    MBEDTLS_SSL_PRESET_DEFAULT) != 0)
        return err_set(err, ERR_INTERNAL, "TLS can't be set up: no random numbers, or no memory");
    if (find_trust(t, trust, err) < 0)
        return -1;
    mbedtls_ssl_conf_rng(&t->config, give_random, NULL);
    mbedtls_ssl_conf_authmode(&t->config, MBEDTLS_SSL_VERIFY_REQUIRED);
    mbedtls_ssl_conf_ca_chain(&t->config, &t->trust, NULL);
    if (mbedtls_ssl_setup(&t->ssl, &t->config) != 0 || mbedtls_ssl_set_hostname(&t->ssl, host) != 0)
        return err_set(err, ERR_TOOL, "'%.255s' can't be the name of a host", host);
    mbedtls_ssl_set_bio(&t->ssl, t, send_some, receive_some, NULL);
    return 0;
}

static bool goes_on(int status)
{
    return status == MBEDTLS_ERR_SSL_WANT_READ || status == MBEDTLS_ERR_SSL_WANT_WRITE;
}

/* What isn't content (a record that comes byte by byte, tickets without end) gets no more time than silence.
 */
static bool goes_on_in_time(const struct tls *t, int *status)
{
    if (goes_on(*status) && now_ms() >= t->deadline)
        *status = MBEDTLS_ERR_SSL_TIMEOUT;
    return goes_on(*status);
}

static int shake_hands(struct tls *t)
{
    int status;
    t->deadline = now_ms() + t->timeout_ms;
    do
        status = mbedtls_ssl_handshake(&t->ssl);
    while (goes_on_in_time(t, &status));
    return status == 0 && mbedtls_ssl_get_verify_result(&t->ssl) != 0 ? MBEDTLS_ERR_X509_CERT_VERIFY_FAILED
                                                                      : status;
}

/* *status is the handshake's; 0: it didn't come to that. */
static int connect_once(struct tls *t, const char *host, const char *port, int *status, struct err *err)
{
    *status = 0;
    io_close(&t->fd);
    t->fd = net_connect(host, port, t->timeout_ms, err);
    if (t->fd < 0)
        return -1;
    *status = shake_hands(t);
    if (*status == 0)
        return 0;
    uint32_t flags = mbedtls_ssl_get_verify_result(&t->ssl);
    if (flags != 0 && flags != UINT32_MAX) /* the latter: it didn't come to that */
        return explain_certificate(flags, host, err);
    explain(*status, err);
    return err_wrap(err, "no secure connection to %s", host);
}

struct tls *tls_open(const char *host, const char *port, const char *trust, int timeout_ms, struct err *err)
{
    int status = 0;
    struct tls *t = mem_zalloc(sizeof *t);
    t->fd = -1;
    t->timeout_ms = timeout_ms;
    int result = prepare(t, host, trust, err);
    if (result == 0)
        result = connect_once(t, host, port, &status, err);
    /* A server that knows TLS 1.2 alone may choose a signature (RSA-PSS) that mbedtls offers for 1.3 and has
     * only there. */
    if (status == MBEDTLS_ERR_SSL_ILLEGAL_PARAMETER) {
        mbedtls_ssl_conf_max_tls_version(&t->config, MBEDTLS_SSL_VERSION_TLS1_2);
        result = mbedtls_ssl_session_reset(&t->ssl) == 0 ? connect_once(t, host, port, &status, err) : -1;
    }
    if (result == 0)
        return t;
    tls_close(t);
    return NULL;
}

void tls_timeout(struct tls *t, int ms)
{
    t->timeout_ms = ms;
}

ssize_t tls_read(struct tls *t, void *out, size_t n, struct err *err)
{
    int status;
    t->deadline = now_ms() + t->timeout_ms;
    do
        status = mbedtls_ssl_read(&t->ssl, out, n);
    while (goes_on_in_time(t, &status));
    if (status >= 0 || status == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY)
        return status > 0 ? status : 0;
    return explain(status, err);
}

int tls_write(struct tls *t, const void *data, size_t n, struct err *err)
{
    const unsigned char *at = data;
    t->deadline = now_ms() + t->timeout_ms;
    while (n > 0) {
        int status = mbedtls_ssl_write(&t->ssl, at, n);
        if (goes_on_in_time(t, &status))
            continue;
        if (status < 0)
            return explain(status, err);
        at += status;
        n -= (size_t)status;
    }
    return 0;
}

void tls_close(struct tls *t)
{
    if (!t)
        return;
    mbedtls_ssl_close_notify(&t->ssl);
    mbedtls_ssl_free(&t->ssl);
    mbedtls_ssl_config_free(&t->config);
    mbedtls_x509_crt_free(&t->trust);
    io_close(&t->fd);
    free(t);
}
