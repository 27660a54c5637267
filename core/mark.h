/* A mark that everything carries that was started in a place, for life.
 *
 * A server that dies leaves its keepers, which the next one finds by their sockets. A keeper that then dies
 * leaves what it has started to process 1, where nothing tells it from other processes: it may have a session
 * of its own, another environment, no descriptor of ours. So all of it carries the mark in a resource limit,
 * which is inherited by whatever is forked and run: the soft limit of the time that a real-time process may
 * run without a pause (RLIMIT_RTTIME), which is set to some 120,000 years of it, or, where a kernel does not
 * have that set (gVisor), that of resident memory (RLIMIT_RSS), which does nothing. Everybody may read it in
 * /proc, and it needs no privilege; a process can take it off by setting that limit itself. */
#ifndef CORE_MARK_H
#define CORE_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct proc;

/* The mark of a place (a directory in this container, of this user). 0: it can't be told. */
unsigned long long mark_of(int dirfd);

/* Marks this process as a server or keeper of the place, unless it has a limit already: that of the
 * administrator, or the mark of another place inside of which this one was started. */
void mark_keeper(unsigned long long mark);

/* In a child of a server or keeper, which may share its memory: what it runs is something that was started.
 */
void mark_started(void);

/* This process carries one, and that can be read. */
bool mark_is_seen(void);

/* Those that were started in the place and whose keeper and server are dead, with all that hangs below them;
 * free() the list. A process whose parent can't be seen (hidepid) is none, unless that is process 1. */
size_t mark_orphans(unsigned long long mark, struct proc **list);

#endif
