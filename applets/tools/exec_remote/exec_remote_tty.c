#include "exec_remote_tty.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;
static int taken;

void tty_put_size(struct buf *out)
{
    struct winsize w;
    if ((ioctl(STDIN_FILENO, TIOCGWINSZ, &w) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0) &&
        w.ws_row > 0 && w.ws_col > 0)
        buf_addf(out, "{\"rows\":%d,\"cols\":%d}", w.ws_row, w.ws_col);
    else
        buf_adds(out, "true");
}

void tty_take(void)
{
    struct termios raw;
    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return;
    raw = before;
    cfmakeraw(&raw);
    taken = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

void tty_give_back(void)
{
    if (taken)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    taken = 0;
}
