#include "tls_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <mbedtls/ssl.h>
#include <psa/crypto.h>

#include "buf.h"
#include "io.h"
#include "mem.h"
#include "random.h"

#define FILE_MAX (1u << 20)
#define REFRESH_MS 1000 /* between two looks at the files */
#define FILES 3

/* What the files have said once; connections hold it. */
struct identity {
    unsigned users;
    mbedtls_ssl_config config;
    mbedtls_x509_crt cert, ca;
    mbedtls_pk_context key;
};

struct stamp {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime;
};

struct tls_server {
    struct tls_files files;
    struct stamp stamps[FILES];
    long long looked_ms;
    bool failed; /* the last time that they were read: they are read again, whether they change or not */
    struct identity *identity;
};

struct tls_peer {
    int fd;
    struct identity *identity;
    mbedtls_ssl_context ssl;
};

/* ---- what the files say ---- */

static int give_random(void *arg, unsigned char *out, size_t size)
{
    (void)arg;
    return random_bytes(out, size) == 0 ? 0 : MBEDTLS_ERR_SSL_INTERNAL_ERROR;
}

static void leave(struct identity *i)
{
    if (!i || --i->users > 0)
        return;
    mbedtls_ssl_config_free(&i->config);
    mbedtls_x509_crt_free(&i->cert);
    mbedtls_x509_crt_free(&i->ca);
    mbedtls_pk_free(&i->key);
    free(i);
}

static int read_certs(mbedtls_x509_crt *certs, const char *path, struct err *err)
{
    struct buf text BUF_AUTO = {.max = FILE_MAX};
    if (io_read_file(AT_FDCWD, path, &text) < 0)
        return err_sys(err, ERR_TOOL, errno, "can't read the certificates in %s", path);
    if (mbedtls_x509_crt_parse(certs, (const unsigned char *)buf_str(&text), text.len + 1) == 0)
        return 0;
    return err_set(err, ERR_TOOL, "there is no certificate in PEM in %s, or something else besides", path);
}

static int read_key(mbedtls_pk_context *key, const char *path, struct err *err)
{
    struct buf text BUF_AUTO = {.max = FILE_MAX};
    if (io_read_file(AT_FDCWD, path, &text) < 0)
        return err_sys(err, ERR_TOOL, errno, "can't read the key in %s", path);
    int status = mbedtls_pk_parse_key(key, (const unsigned char *)buf_str(&text), text.len + 1, NULL, 0,
                                      give_random, NULL);
    memset(text.data ? text.data : (char[1]){0}, 0, text.len);
    if (status == 0)
        return 0;
    return err_set(err, ERR_TOOL,
                   "there is no key in PEM, of RSA or an elliptic curve and not encrypted, in %s", path);
}

static int read_files(struct identity *i, const struct tls_files *f, struct err *err)
{
    if (read_certs(&i->cert, f->cert, err) < 0 || read_key(&i->key, f->key, err) < 0 ||
        (f->ca && read_certs(&i->ca, f->ca, err) < 0))
        return -1;
    if (mbedtls_pk_check_pair(&i->cert.pk, &i->key, give_random, NULL) != 0)
        return err_set(err, ERR_TOOL, "the key in %s isn't that of the first certificate in %s", f->key,
                       f->cert);
    return 0;
}

/* NULL with err. */
static struct identity *load(const struct tls_files *f, struct err *err)
{
    struct identity *i = mem_zalloc(sizeof *i);
    i->users = 1;
    mbedtls_ssl_config_init(&i->config);
    mbedtls_x509_crt_init(&i->cert);
    mbedtls_x509_crt_init(&i->ca);
    mbedtls_pk_init(&i->key);
    if (read_files(i, f, err) < 0) {
        leave(i);
        return NULL;
    }
    if (mbedtls_ssl_config_defaults(&i->config, MBEDTLS_SSL_IS_SERVER, MBEDTLS_SSL_TRANSPORT_STREAM,
                                    MBEDTLS_SSL_PRESET_DEFAULT) != 0 ||
        mbedtls_ssl_conf_own_cert(&i->config, &i->cert, &i->key) != 0) {
        err_set(err, ERR_INTERNAL, "TLS can't be set up: no memory");
        leave(i);
        return NULL;
    }
    mbedtls_ssl_conf_rng(&i->config, give_random, NULL);
    if (f->ca) {
        mbedtls_ssl_conf_authmode(&i->config, MBEDTLS_SSL_VERIFY_REQUIRED);
        mbedtls_ssl_conf_ca_chain(&i->config, &i->ca, NULL);
    }
    return i;
}

/* ---- the server ---- */

/* Whether the files are other ones than the last time. */
static bool has_changed(struct tls_server *s)
{
    const char *const paths[FILES] = {s->files.cert, s->files.key, s->files.ca};
    bool changed = false;
    for (int i = 0; i < FILES; i++) {
        struct stat st;
        struct stamp now = {0};
        if (paths[i] && stat(paths[i], &st) == 0) {
            now.dev = st.st_dev;
            now.ino = st.st_ino;
            now.size = st.st_size;
            now.mtime = st.st_mtim;
        }
        struct stamp *before = &s->stamps[i];
        changed = changed || now.dev != before->dev || now.ino != before->ino || now.size != before->size ||
                  now.mtime.tv_sec != before->mtime.tv_sec || now.mtime.tv_nsec != before->mtime.tv_nsec;
        *before = now;
    }
    return changed;
}

struct tls_server *tls_server_new(const struct tls_files *files, struct err *err)
{
    if (psa_crypto_init() != PSA_SUCCESS) {
        err_set(err, ERR_INTERNAL, "TLS can't be set up: no random numbers, or no memory");
        return NULL;
    }
    struct tls_server *s = mem_zalloc(sizeof *s);
    s->files = *files;
    has_changed(s);
    s->looked_ms = now_ms();
    s->identity = load(files, err);
    if (s->identity)
        return s;
    free(s);
    return NULL;
}

void tls_server_free(struct tls_server *s)
{
    if (s)
        leave(s->identity);
    free(s);
}

int tls_server_refresh(struct tls_server *s, struct err *err)
{
    if (now_ms() - s->looked_ms < REFRESH_MS)
        return 0;
    s->looked_ms = now_ms();
    bool changed = has_changed(s), told = s->failed && !changed;
    if (!changed && !s->failed)
        return 0;
    struct identity *fresh = load(&s->files, err);
    s->failed = !fresh;
    if (!fresh)
        return told ? 0 : -1;
    leave(s->identity);
    s->identity = fresh;
    return 0;
}

/* ---- a client ---- */

static int moved(ssize_t n, int again)
{
    if (n > 0)
        return (int)n;
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? again : MBEDTLS_ERR_SSL_CONN_EOF;
}

static int send_some(void *arg, const unsigned char *data, size_t n)
{
    const struct tls_peer *p = arg;
    return moved(send(p->fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT), MBEDTLS_ERR_SSL_WANT_WRITE);
}

static int receive_some(void *arg, unsigned char *out, size_t n)
{
    const struct tls_peer *p = arg;
    return moved(recv(p->fd, out, n, MSG_DONTWAIT), MBEDTLS_ERR_SSL_WANT_READ);
}

static ssize_t outcome(int status)
{
    return status >= 0                                   ? status
           : status == MBEDTLS_ERR_SSL_WANT_READ         ? TLS_WANT_READ
           : status == MBEDTLS_ERR_SSL_WANT_WRITE        ? TLS_WANT_WRITE
           : status == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY ? 0
                                                         : -1;
}

struct tls_peer *tls_peer_new(struct tls_server *s, int fd)
{
    struct tls_peer *p = mem_zalloc(sizeof *p);
    p->fd = fd;
    p->identity = s->identity;
    p->identity->users++;
    mbedtls_ssl_init(&p->ssl);
    if (mbedtls_ssl_setup(&p->ssl, &p->identity->config) != 0) {
        tls_peer_free(p);
        return NULL;
    }
    mbedtls_ssl_set_bio(&p->ssl, p, send_some, receive_some, NULL);
    return p;
}

void tls_peer_free(struct tls_peer *p)
{
    if (!p)
        return;
    mbedtls_ssl_free(&p->ssl);
    leave(p->identity);
    free(p);
}

int tls_peer_shake(struct tls_peer *p)
{
    return (int)outcome(mbedtls_ssl_handshake(&p->ssl));
}

ssize_t tls_peer_read(struct tls_peer *p, void *out, size_t n)
{
    return outcome(mbedtls_ssl_read(&p->ssl, out, n));
}

ssize_t tls_peer_write(struct tls_peer *p, const void *data, size_t n)
{
    return outcome(mbedtls_ssl_write(&p->ssl, data, n));
}

void tls_peer_close(struct tls_peer *p)
{
    mbedtls_ssl_close_notify(&p->ssl);
}
