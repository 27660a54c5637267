/* Whether what a process reads comes from another one. */
#ifndef APPLETS_BASH_SESSION_SESSION_PEER_H
#define APPLETS_BASH_SESSION_SESSION_PEER_H

#include <stdbool.h>
#include <sys/types.h>

/* Descriptor fd of the process is a socket or a pipe at whose other end somebody else is; not one at which it
 * waits for others to come, and not one with which it wakes itself. (A descriptor_fn; `arg` is not used.) */
bool peer_is_another(const void *arg, pid_t pid, unsigned long long fd);

#endif
