/* `docker exec -i [-u USER] NAME COMMAND…` as a process of our own that talks to the engine's socket, without
 * the start of its client: the same pipes, exit status and ends. What it can't do is done by the client. */
#ifndef INJECT_ENGINE_H
#define INJECT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* For one who goes on with the engine's socket himself: a byte at `up` says that its bytes are at `socket` by
 * now, the program's stdin as they are and its output in frames, and that the process has done its part. The
 * end of `up` alone: they are at the descriptors that the process was given. */
struct engine_direct {
    int up, socket;
};

/* Starts it with these as stdin, stdout and stderr, in a session of its own; *over (stays) is the path of the
 * socket. `direct` may be NULL: the process passes all bytes on, until the end. -1: the command is another
 * one, or there is no such socket here (engine_socket), and the command itself has to be run. */
pid_t engine_start(int start_dir, char *const *argv, const int fds[3], struct engine_direct *direct,
                   const char **over);

/* The frames of the program's output. */
#define ENGINE_FRAME_HEAD 8 /* which stream, three bytes of nothing, length */
struct engine_frames {
    char head[ENGINE_FRAME_HEAD];
    size_t has;  /* of the head */
    size_t left; /* of the frame's bytes; whoever takes some says so here */
    int to;      /* the descriptor that they were written to: 1 or 2 */
};
/* How many of the bytes from data + *at (which goes behind heads) up to data + n belong to one frame; 0: none
 * are left. */
size_t engine_frame_bytes(struct engine_frames *f, const char *data, size_t *at, size_t n);

/* The socket at which that program's engine would be asked (DOCKER_HOST, CONTAINER_HOST, the current context,
 * /var/run/docker.sock); NULL: at none here. `guess`: also where the client's configuration can't be read. */
const char *engine_socket(const char *program, bool guess);
int engine_dial(const char *path); /* non-blocking; -1 when nobody listens there */

#endif
