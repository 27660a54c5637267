/* `docker exec -i [-u USER] NAME COMMAND…` as a process of our own that talks to the engine's socket, without
 * the start of its client: the same pipes, exit status and ends. What it can't do is done by the client. */
#ifndef INJECT_ENGINE_H
#define INJECT_ENGINE_H

#include <stdbool.h>
#include <sys/types.h>

/* Starts it with these as stdin, stdout and stderr, in a session of its own; *over (stays) is the path of the
 * socket. -1: the command is another one, or there is no such socket here (engine_socket), and the
 * command itself has to be run. */
pid_t engine_start(int start_dir, char *const *argv, const int fds[3], const char **over);

/* The socket at which that program's engine would be asked (DOCKER_HOST, CONTAINER_HOST, the current context,
 * /var/run/docker.sock); NULL: at none here. `guess`: also where the client's configuration can't be read. */
const char *engine_socket(const char *program, bool guess);
int engine_dial(const char *path); /* non-blocking; -1 when nobody listens there */

#endif
