#include "session_input.h"

#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "io.h"

#define RAW_STEP 3072 /* leaves room for a signal key behind it */

static void write_some(struct input *in, const struct pty *pty, size_t n)
{
    ssize_t done = write(pty->master, in->pending.data + in->written, n);
    if (done > 0)
        in->written += (size_t)done;
    if (in->written == in->pending.len) {
        buf_release(&in->pending);
        in->written = 0;
    }
}

/* There is room for it: never more is written than leaves some. Whoever looks next may rely on its signal:
 * the kernel works on what was written by and by, and is through with it when it is asked what there is to
 * read.
 */
static void write_key(const struct pty *pty, cc_t key)
{
    if (write(pty->master, &key, 1) == 1)
        io_is_readable(pty->slave);
}

static bool ends_line(const struct termios *t, char c)
{
    static const int keys[] = {VEOF, VEOL, VEOL2};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if ((cc_t)c == t->c_cc[keys[i]] && t->c_cc[keys[i]] != _POSIX_VDISABLE)
            return true;
    return c == '\n' || (c == '\r' && (t->c_iflag & ICRNL) && !(t->c_iflag & IGNCR));
}

/* Length up to and with the last end of a line within n bytes; 0: no line ends there. */
static size_t whole_lines(const char *s, size_t n, const struct termios *t)
{
    while (n > 0 && !ends_line(t, s[n - 1]))
        n--;
    return n;
}

/* Length up to an end-of-file key that stands alone; such a key by itself: gVisor loses it, and what is
 * behind it, where both come at once. */
static size_t up_to_end_of_file(const char *s, size_t n, const struct termios *t)
{
    for (size_t i = 0; i < n; i++)
        if ((cc_t)s[i] == t->c_cc[VEOF] && (i == 0 || ends_line(t, s[i - 1])))
            return i > 0 ? i : 1;
    return n;
}

static void pump_canonical(struct input *in, const struct pty *pty, bool reading, const struct termios *t)
{
    const char *at = in->pending.data + in->written;
    size_t left = up_to_end_of_file(at, in->pending.len - in->written, t);
    size_t room = TERMINAL_HOLDS - in->partial;
    size_t lines = whole_lines(at, left < room ? left : room, t);
    if (lines > 0) {
        in->partial = 0;
        write_some(in, pty, lines);
    } else if (left < room) { /* one place stays for what will end the line */
        in->partial += left;
        write_some(in, pty, left);
    } else if (reading) {
        write_some(in, pty, room - 1);
        write_key(pty, t->c_cc[VEOF]);
        in->partial = 0;
    }
}

/* A line editor reads. What it leaves in the terminal becomes ordinary bytes for the program that it starts,
 * an end-of-file key too: that is held back until whoever it is meant for reads. */
static void pump_raw(struct input *in, const struct pty *pty, bool reading, cc_t eof)
{
    const char *at = in->pending.data + in->written;
    size_t left = in->pending.len - in->written, n = left < RAW_STEP ? left : RAW_STEP;
    const char *key = memchr(at, eof, n);
    in->partial = 0;
    if (key == at)
        n = reading;
    else if (key)
        n = (size_t)(key - at);
    if (n > 0)
        write_some(in, pty, n);
}

bool input_pump(struct input *in, const struct pty *pty, bool reading)
{
    struct termios t;
    size_t before = in->pending.len - in->written;
    if (before == 0 || io_is_readable(pty->slave) || tcgetattr(pty->slave, &t) < 0)
        return false;
    if (t.c_lflag & ICANON)
        pump_canonical(in, pty, reading, &t);
    else
        pump_raw(in, pty, reading, t.c_cc[VEOF]);
    return in->pending.len - in->written < before;
}

bool input_is_taken(const struct input *in, const struct pty *pty)
{
    return in->pending.len == 0 && !io_is_readable(pty->slave);
}

size_t input_signal_key(const struct pty *pty, const char *s, size_t n)
{
    struct termios t;
    if (tcgetattr(pty->slave, &t) < 0 || !(t.c_lflag & ISIG))
        return 0;
    for (; n > 0; n--) {
        cc_t c = (cc_t)s[n - 1];
        if (c != _POSIX_VDISABLE && (c == t.c_cc[VINTR] || c == t.c_cc[VQUIT] || c == t.c_cc[VSUSP]))
            break;
    }
    return n;
}

bool input_is_interrupt(const struct pty *pty, const char *s, size_t n)
{
    struct termios t;
    return n > 0 && input_signal_key(pty, s, n) == n && tcgetattr(pty->slave, &t) == 0 &&
           (cc_t)s[n - 1] == t.c_cc[VINTR];
}

/* As the kernel does with such a key, but for gVisor's. */
static void drop_unread(const struct pty *pty)
{
    struct termios t;
    if (tcgetattr(pty->slave, &t) == 0 && !(t.c_lflag & NOFLSH))
        tcflush(pty->slave, TCIFLUSH);
}

void input_drop(struct input *in, const struct pty *pty)
{
    buf_release(&in->pending);
    in->written = in->partial = 0;
    drop_unread(pty);
    in->signalled = now_us();
    in->on_its_way = true;
}

int input_add(struct input *in, const struct pty *pty, const char *s, size_t n, struct err *err)
{
    size_t key = input_signal_key(pty, s, n);
    if (key > 0) {
        input_drop(in, pty);
        write_key(pty, (cc_t)s[key - 1]);
        s += key;
        n -= key;
    }
    size_t waiting = in->pending.len - in->written,
           most = memory_share(&in->share, waiting + n, SESSION_INPUT_MAX);
    if (waiting + n > most)
        return err_set(err, ERR_TOOL,
                       "nothing of the input was taken: %zu bytes still wait for the program to read them, "
                       "and %zu MiB are "
                       "the limit; interrupt it or restart the session",
                       waiting, most >> 20);
    buf_add(&in->pending, s, n);
    return 0;
}

void input_release(struct input *in)
{
    buf_release(&in->pending);
    *in = (struct input){.pending = BUF_INIT};
}
