/* Unix sockets of the server and the keepers, inside a place (place.h).
 *
 * A socket's name carries the build id and the identity of "/": a client talks only to a process of exactly
 * its own build and its own container. bind and connect are done relative to the directory, so a path of any
 * length works; a socket gets its name only once it listens, so that nobody ever meets one that is bound and
 * refuses. There are no pid files: a connect that succeeds proves that the owner lives, its credentials give
 * its pid. */
#ifndef CORE_IPC_H
#define CORE_IPC_H

#include <stdbool.h>
#include <sys/types.h>

#include "err.h"
#include "place.h"
#include "version.h"

#define IPC_NAME_MAX 104 /* fits sun_path */

#define IPC_SERVER "server"
#define IPC_TRANSIENT "once-" /* begins the names of sockets that are there for one client: no keeper's */
/* Whether that is the name of a keeper. */
bool ipc_is_keeper(const char *owner);

/* File name of `owner`'s socket ("server", "BashSession_1"): OWNER.BUILD.DEV-INO. -1 when owner is too long
 * or holds anything but letters, digits, '_' and '-'. */
int ipc_name(char name[IPC_NAME_MAX], const char *owner);
/* File name of a hidden one (ipc_listen_hidden). */
int ipc_hidden_name(char name[1 + IPC_NAME_MAX], const char *owner);
/* The same as ipc_name for an owner of another build. */
int ipc_name_in(char name[IPC_NAME_MAX], const char *owner, const char *build);

/* Listens as `owner` in the directory; whatever socket of that name was there is replaced. Non-blocking,
 * close-on-exec. */
int ipc_listen(int dirfd, const char *owner, struct err *err);

/* The same in two steps, for an owner whose name isn't known at first: a socket that listens where nobody
 * looks, and the move to its name; one that is not moved is taken away by ipc_unlink_hidden. */
int ipc_listen_hidden(int dirfd, const char *owner, struct err *err);
int ipc_show(int dirfd, const char *hidden, const char *owner, struct err *err);
void ipc_unlink_hidden(int dirfd, const char *owner);

/* Hides the socket of an owner that has ended. Others would unlink it; but a file system without a journal
 * (ext4) keeps the inodes of removed files out of use for minutes, and looks at each of them again for every
 * new file. */
void ipc_hide(int dirfd, const char *owner, const char *hidden);
bool ipc_is_hidden(int dirfd, const char *hidden);

/* For a socket that several processes use, one after the other: makes this process the one that peers see,
 * and turns away those who came for the one before (their connection is reset). */
int ipc_listen_again(int fd);
void ipc_refuse_queued(int fd);

/* Says that the directory is this process's working directory and stays it, so that nobody has to go there
 * and back. */
void ipc_stay_in(int dirfd);

/* Connects to `owner` (close-on-exec). -1 with errno: ENOENT and ECONNREFUSED mean that nobody is there,
 * EAGAIN that somebody is, but for wait_s seconds took no connection from its full queue. Its peer must be of
 * this process's own uid and see us as in one pid namespace (EPERM otherwise). With wait_s 0 the socket
 * doesn't block, otherwise it does. */
#define IPC_WAIT_S 3
int ipc_connect(int dirfd, const char *owner, int wait_s);

/* Looks for a live `owner` in all candidate places. The socket, and in *p the place; -1 when there is none.
 */
int ipc_find(struct place *p, const char *owner);

/* True when there is a socket file of that owner, live or not. */
bool ipc_exists(int dirfd, const char *owner);
void ipc_unlink(int dirfd, const char *owner);

/* Owners of this build and container with sockets in the directory: calls fn for each. */
void ipc_each(int dirfd, void (*fn)(void *arg, const char *owner), void *arg);
/* The names of other files of this build and container that begin with `prefix` (a dot in front: nobody's
 * sockets). */
void ipc_each_file(int dirfd, const char *prefix, void (*fn)(void *arg, const char *name), void *arg);
/* The names of all files of other builds in this container. */
void ipc_each_other(int dirfd, void (*fn)(void *arg, const char *name), void *arg);
/* Whether a name is that of a file of any build in this container. */
bool ipc_is_file(const char *name);
/* The build in the name of such a file, when it is another one. */
bool ipc_other_build(const char *name, char build[BUILD_ID_SIZE]);
/* The same with the owner. False where it is nobody's socket. */
bool ipc_split(const char *name, char owner[IPC_NAME_MAX], char build[BUILD_ID_SIZE]);
/* As ipc_connect, to a socket by its file's name. */
int ipc_connect_file(int dirfd, const char *name, int wait_s);

/* Removes all of both, the server's socket last: who misses that starts another one. */
void ipc_clear(int dirfd);

/* Credentials of the peer. -1 when they can't be had or when the peer is in another pid namespace (its pid
 * reads 0). */
int ipc_peer(int fd, pid_t *pid, uid_t *uid);

#endif
