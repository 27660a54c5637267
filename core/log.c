#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io.h"

#define NAME "log"
#define LINE_MAX_BYTES 512

const char *const log_level_names[] = {"error", "warning", "info", "debug", NULL};

static enum log_level current = LOG_INFO;
static int directory = -1;
static bool on_stderr;

bool log_wanted(enum log_level level)
{
    return level <= current && (directory >= 0 || on_stderr);
}

int log_level_of(const char *name)
{
    for (int i = 0; log_level_names[i]; i++)
        if (strcmp(log_level_names[i], name) == 0)
            return i;
    return -1;
}

void log_set_level(enum log_level level)
{
    current = level;
}

enum log_level log_current_level(void)
{
    return current;
}

void log_open(int dirfd, bool to_stderr)
{
    directory = dirfd;
    on_stderr = to_stderr;
}

/* -1 where there is something else of the name. The umask may have made it anything. */
static int open_file(struct stat *st)
{
    int fd =
        openat(directory, NAME, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode) || st->st_uid != geteuid() || st->st_nlink > 1)
        io_close(&fd);
    else if ((st->st_mode & 07777) != 0600)
        fchmod(fd, 0600);
    return fd;
}

/* Several processes write: who has the lock and still finds this very file under the name may move it. */
static void rotate(int fd, const struct stat *st)
{
    struct stat now;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstatat(directory, NAME, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
        now.st_ino == st->st_ino && now.st_dev == st->st_dev)
        renameat(directory, NAME, directory, NAME ".old");
}

/* One write each: lines of several processes don't mix. What doesn't fit on the disk is not written. */
static void to_file(const char *line, size_t n)
{
    struct stat st;
    int fd FD_AUTO = open_file(&st);
    if (fd >= 0 && st.st_size + (off_t)n > LOG_MAX) {
        rotate(fd, &st);
        io_close(&fd);
        fd = open_file(&st);
    }
    if (fd >= 0 && st.st_size + (off_t)n <= LOG_MAX && write(fd, line, n) < 0)
        return;
}

/* Nobody may be reading there: then the line is lost, and nothing waits. */
static void to_stderr(const char *line, size_t n)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) && write(STDERR_FILENO, line, n) < 0)
        return;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    char line[LINE_MAX_BYTES];
    struct timespec now;
    struct tm t;
    va_list ap;
    int saved = errno;
    if (!log_wanted(level))
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &t);
    int n = snprintf(line, sizeof line, "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ %ld %s: ", t.tm_year + 1900,
                     t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec, now.tv_nsec / 1000000,
                     (long)getpid(), log_level_names[level]);
    va_start(ap, fmt);
    vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    va_end(ap);
    size_t length = strlen(line);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = '?';
    line[length++] = '\n';
    if (directory >= 0)
        to_file(line, length);
    if (on_stderr)
        to_stderr(line, length);
    errno = saved;
}
