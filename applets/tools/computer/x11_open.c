#include "x11.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "net.h"

#define AUTHORITY_MAX (1u << 20)
#define COOKIE_NAME "MIT-MAGIC-COOKIE-1"
#define TCP_PORT 6000
#define CONNECT_MS 10000
#define SETUP_HEAD 8

/* ---- the display's name ---- */

struct place_of {
    char host[256]; /* "": a socket of this machine */
    char number[12];
    int screen;
};

static int parse(const char *display, struct place_of *p, struct err *err)
{
    const char *colon = strrchr(display, ':');
    size_t n_host = colon ? (size_t)(colon - display) : 0;
    const char *number = colon ? colon + 1 : "";
    size_t digits = strspn(number, "0123456789");
    const char *screen = number[digits] == '.' ? number + digits + 1 : "0";
    if (digits == 0 || digits > 5 || (number[digits] && number[digits] != '.') || n_host >= sizeof p->host ||
        !*screen || strlen(screen) > 2 || screen[strspn(screen, "0123456789")])
        return err_set(err, ERR_TOOL, "'%.100s' is no display; it is said as :0 or HOST:0", display);
    *p = (struct place_of){.screen = (int)strtol(screen, NULL, 10)};
    memcpy(p->number, number, digits);
    if (n_host > 2 && display[0] == '[' && display[n_host - 1] == ']') {
        display++;
        n_host -= 2;
    }
    if (!(n_host == 4 && strncmp(display, "unix", 4) == 0))
        memcpy(p->host, display, n_host);
    return 0;
}

/* ---- the cookie ---- */

/* The next counted string of the file, whose numbers are big-endian. */
static bool field(const struct buf *file, size_t *at, const char **s, size_t *n)
{
    if (file->len - *at < 2)
        return false;
    *n = (size_t)(unsigned char)file->data[*at] << 8 | (unsigned char)file->data[*at + 1];
    *s = file->data + *at + 2;
    if (file->len - *at - 2 < *n)
        return false;
    *at += 2 + *n;
    return true;
}

static bool same(const char *s, size_t n, const char *text)
{
    return n == strlen(text) && memcmp(s, text, n) == 0;
}

/* That of this host is better than that of any: a container's name changes. */
static void find_cookie(const char *authority, const struct place_of *p, struct buf *cookie)
{
    enum { ADDRESS, NUMBER, NAME, DATA, FIELDS };
    struct buf file BUF_AUTO = {.max = AUTHORITY_MAX};
    const char *s[FIELDS];
    size_t n[FIELDS], at = 2; /* behind the family */
    char host[256] = "";
    bool good = false;
    if (p->host[0])
        snprintf(host, sizeof host, "%s", p->host);
    else
        gethostname(host, sizeof host - 1);
    if (!authority || io_read_file(-1, authority, &file) < 0)
        return;
    for (; at <= file.len; at += 2) {
        for (int i = 0; i < FIELDS; i++)
            if (!field(&file, &at, &s[i], &n[i]))
                return;
        bool here = same(s[ADDRESS], n[ADDRESS], host);
        if (!same(s[NAME], n[NAME], COOKIE_NAME) || good || (cookie->len > 0 && !here) ||
            (n[NUMBER] > 0 && !same(s[NUMBER], n[NUMBER], p->number)))
            continue;
        buf_truncate(cookie, 0);
        buf_add(cookie, s[DATA], n[DATA]);
        good = here;
    }
}

/* ---- the connection ---- */

static int connect_unix(const char *number, bool abstract)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int n = snprintf(at.sun_path + abstract, sizeof at.sun_path - 1, "/tmp/.X11-unix/X%s", number);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, size) < 0)
        io_close(&fd);
    return fd;
}

static int connect_to(const char *display, const struct place_of *p, struct err *err)
{
    char port[12];
    if (p->host[0]) {
        snprintf(port, sizeof port, "%d", TCP_PORT + (int)strtol(p->number, NULL, 10));
        int fd = net_connect(p->host, port, CONNECT_MS, err);
        return fd < 0 ? err_wrap(err, "cannot connect to the display %.100s", display) : fd;
    }
    int fd = connect_unix(p->number, false);
    int errnum = errno;
    if (fd < 0)
        fd = connect_unix(p->number, true);
    if (fd < 0)
        return err_sys(err, ERR_TOOL, errnum, "cannot connect to the display %.100s (/tmp/.X11-unix/X%s)",
                       display, p->number);
    return fd;
}

int x11_open(struct x11 *x, const char *display, const char *authority, struct err *err)
{
    struct buf cookie BUF_AUTO = BUF_INIT;
    struct place_of p = {0};
    *x = (struct x11){.fd = -1};
    if (parse(display, &p, err) < 0)
        return -1;
    int fd = connect_to(display, &p, err);
    if (fd < 0)
        return -1;
    find_cookie(authority, &p, &cookie);
    return x11_set_up(x, fd, display, p.screen, &cookie, err);
}

/* ---- what it says of itself ---- */

/* Steps over n bytes of what is there. */
static const char *take(struct buf *from, size_t *at, size_t n)
{
    const char *here = from->data + *at;
    if (from->len - *at < n)
        return NULL;
    *at += n;
    return here;
}

static void read_visual(struct x11_screen *s, const char *v)
{
    enum { TRUE_COLOR = 4, DIRECT_COLOR = 5 };
    if (v[4] != TRUE_COLOR && v[4] != DIRECT_COLOR)
        return;
    s->red = x11_u32(v + 8);
    s->green = x11_u32(v + 12);
    s->blue = x11_u32(v + 16);
}

static bool read_screen(struct x11 *x, struct buf *setup, size_t *at, bool wanted)
{
    const char *s = take(setup, at, 40);
    if (!s)
        return false;
    uint32_t visual = x11_u32(s + 32);
    if (wanted) {
        x->screen.root = x11_u32(s);
        x->screen.width = x11_u16(s + 20);
        x->screen.height = x11_u16(s + 22);
        x->screen.depth = (unsigned char)s[38];
    }
    for (int depths = (unsigned char)s[39]; depths > 0; depths--) {
        const char *depth = take(setup, at, 8);
        for (int visuals = depth ? x11_u16(depth + 2) : 0; visuals > 0; visuals--) {
            const char *v = take(setup, at, 24);
            if (!v)
                return false;
            if (wanted && x11_u32(v) == visual)
                read_visual(&x->screen, v);
        }
        if (!depth)
            return false;
    }
    return true;
}

static bool read_setup(struct x11 *x, struct buf *setup, int screen)
{
    size_t at = 0;
    const char *head = take(setup, &at, 32);
    if (!head)
        return false;
    x->id_base = x11_u32(head + 4);
    x->id_mask = x11_u32(head + 8);
    x->screen.msb_first = head[22] != 0;
    x->key_min = (unsigned char)head[26];
    x->key_max = (unsigned char)head[27];
    int screens = (unsigned char)head[20], n_formats = (unsigned char)head[21];
    size_t vendor = x11_u16(head + 16);
    const char *formats;
    if (screen >= screens || !take(setup, &at, (vendor + 3) & ~(size_t)3) || x->id_mask == 0 ||
        x->key_min < 8 || x->key_max < x->key_min || !(formats = take(setup, &at, (size_t)n_formats * 8)))
        return false;
    for (int i = 0; i <= screen; i++)
        if (!read_screen(x, setup, &at, i == screen))
            return false;
    for (int i = 0; i < n_formats; i++)
        if ((unsigned char)formats[(size_t)i * 8] == x->screen.depth) {
            x->screen.bits = (unsigned char)formats[(size_t)i * 8 + 1];
            x->screen.pad = (unsigned char)formats[(size_t)i * 8 + 2];
        }
    return x->screen.width > 0 && x->screen.height > 0 &&
           (x->screen.pad == 8 || x->screen.pad == 16 || x->screen.pad == 32) && x->screen.bits % 8 == 0 &&
           x->screen.bits >= 8 && x->screen.bits <= 32;
}

/* Reads n bytes from now on into `in`. */
static int wait_for(struct x11 *x, size_t n, long long until, struct err *err)
{
    while (x->in.len < n) {
        char data[4096];
        long long left = until - now_ms();
        size_t want = n - x->in.len < sizeof data ? n - x->in.len : sizeof data;
        if (left <= 0 || net_wait(x->fd, POLLIN, (int)left) < 0)
            return err_set(err, ERR_TOOL, "the display %s does not answer", x->display);
        ssize_t got = read(x->fd, data, want);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (got <= 0)
            return err_set(err, ERR_TOOL, "the display %s closes the connection: is that an X server?",
                           x->display);
        buf_add(&x->in, data, (size_t)got);
    }
    return 0;
}

static int say_hello(struct x11 *x, const struct buf *cookie, struct err *err)
{
    struct buf hello BUF_AUTO = BUF_INIT;
    size_t n_name = cookie->len > 0 ? sizeof COOKIE_NAME - 1 : 0;
    unsigned char head[12] = {'l',
                              0,
                              11,
                              0,
                              0,
                              0,
                              (unsigned char)n_name,
                              0,
                              (unsigned char)cookie->len,
                              (unsigned char)(cookie->len >> 8)};
    buf_add(&hello, head, sizeof head);
    buf_add(&hello, COOKIE_NAME "\0\0\0", (n_name + 3) & ~(size_t)3);
    buf_add(&hello, cookie->data, cookie->len);
    buf_add(&hello, "\0\0\0", -cookie->len & 3);
    if (io_write_all(x->fd, hello.data, hello.len) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot write to the display %s", x->display);
    return 0;
}

/* How it says no, as text. */
static int refused(struct x11 *x, int n_reason, const struct buf *cookie, struct err *err)
{
    size_t n = x->in.len - SETUP_HEAD;
    if (n_reason > 0 && (size_t)n_reason < n)
        n = (size_t)n_reason;
    while (n > 0 && (x->in.data[SETUP_HEAD + n - 1] == '\n' || x->in.data[SETUP_HEAD + n - 1] == 0))
        n--;
    return err_set(err, ERR_TOOL, "the display %s refuses us: %.*s%s", x->display, (int)n,
                   x->in.data + SETUP_HEAD,
                   cookie->len > 0 ? "" : "; no cookie for it was found ($XAUTHORITY, or ~/.Xauthority)");
}

int x11_set_up(struct x11 *x, int fd, const char *display, int screen, const struct buf *cookie,
               struct err *err)
{
    long long until = now_ms() + X11_PATIENCE_MS;
    *x = (struct x11){.fd = fd, .display = mem_strdup(display)};
    buf_init(&x->out, BUF_NO_MAX);
    buf_init(&x->in, BUF_NO_MAX);
    buf_init(&x->events, BUF_NO_MAX);
    io_set_nonblock(fd, true);
    int result = say_hello(x, cookie, err);
    if (result == 0)
        result = wait_for(x, SETUP_HEAD, until, err);
    if (result == 0)
        result = wait_for(x, SETUP_HEAD + (size_t)x11_u16(x->in.data + 6) * 4, until, err);
    if (result == 0 && x->in.data[0] != 1)
        result = refused(x, x->in.data[0] == 0 ? (unsigned char)x->in.data[1] : 0, cookie, err);
    if (result == 0) {
        buf_consume(&x->in, SETUP_HEAD);
        if (!read_setup(x, &x->in, screen))
            result =
                err_set(err, ERR_TOOL, "the display %s describes itself as none that can be used", display);
    }
    buf_truncate(&x->in, 0);
    if (result < 0)
        x11_close(x);
    return result;
}
