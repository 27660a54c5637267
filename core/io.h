/* Reading and writing descriptors whole, with EINTR and short transfers dealt with once. */
#ifndef CORE_IO_H
#define CORE_IO_H

#include <stdbool.h>
#include <sys/types.h>

struct buf;

/* Writes all of it (waiting where the descriptor doesn't block). 0, or -1 with errno. */
int io_write_all(int fd, const void *data, size_t len);

/* Whether a read would find something now; a signal doesn't make it say no. */
bool io_is_readable(int fd);

/* One read of what there is, into out. Its bytes, 0 at the end, or -1 with errno (EFBIG where more than out's
 * max would be). */
ssize_t io_read_more(int fd, struct buf *out);

/* Reads to the end of the file into out. 0, or -1 with errno (EFBIG when out's max is reached). */
int io_read_all(int fd, struct buf *out);

/* The same with a limit (ETIMEDOUT), for what depends on a process of somebody else's; the descriptor doesn't
 * block any more. */
int io_read_within(int fd, int ms, struct buf *out);

/* io_read_all of a file; the size in its metadata is not believed (/proc says 0). `dirfd` as openat. */
int io_read_file(int dirfd, const char *path, struct buf *out);

/* Whether a directory has something of that name, be it a link that leads nowhere; false with errno.
 * (faccessat follows links on kernels before 5.8, or refuses the flag.) */
bool io_is_there(int dirfd, const char *name);

int io_set_nonblock(int fd, bool on);

/* A directory to be read, which is no symlink; -1 with errno. */
int io_open_dir(int at, const char *name);

/* Makes n pipes (close-on-exec). 0, or -1 with errno; those made until then stay. */
int io_pipes(int pipes[][2], size_t n);

/* A pipe that was found full is to hold more: fewer wake-ups. Once (*done), since what all pipes of a user
 * hold is limited; of anything else nothing is changed. */
void io_widen(int pipe, bool *done);

/* Whether it outlives an execve. 0, or -1 with errno. */
int io_keep(int fd, bool keep);

/* The descriptor, which blocks no more and is the caller's; *fd becomes -1. */
int io_take(int *fd);

/* Closes *fd unless it is -1, sets it to -1 and keeps errno: for cleanup attributes as well. */
void io_close(int *fd);
#define FD_AUTO __attribute__((cleanup(io_close)))

/* Closes every descriptor above 2 except those in `keep` (n of them, which are few). Needs no /proc and no
 * close_range. */
void io_close_others(const int *keep, size_t n);

/* Opens /dev/null (or, where there is none, a pipe's closed end) on whichever of 0, 1, 2 is closed, so that
 * no socket or file of ours becomes a standard descriptor. As from a closed one nothing can be read from 0,
 * and nothing written to the others: an answer that nobody gets is no success. */
void io_fill_std(void);

long long now_ms(void);  /* CLOCK_MONOTONIC, milliseconds */
long long wall_ms(void); /* CLOCK_REALTIME, milliseconds */
long long now_us(void);  /* the same, microseconds */

#endif
