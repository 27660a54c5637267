/* What a process sleeps in, as the kernel tells it. */
#ifndef APPLETS_BASH_SESSION_SESSION_SLEEP_H
#define APPLETS_BASH_SESSION_SESSION_SLEEP_H

#include <stdbool.h>
#include <sys/types.h>

/* A system call (proc(5), /proc/PID/syscall), and its first arguments. */
struct sleeping {
    pid_t pid; /* or a thread's */
    long call; /* -1: it runs, or sleeps in none */
    unsigned long long arg[6];
    char text[256]; /* the line itself: equal twice means that the process has not moved */
};

/* From now on: where a kernel tells in no other way, what sleeps may be stopped for a moment to know in what
 * (session_trace.h). At first it may not. */
void sleeping_may_be_stopped(bool may);

/* -1 with errno: it has gone, or may not be looked at. */
int sleeping_read(pid_t pid, struct sleeping *s);
/* It has not moved since. */
bool sleeping_still(const struct sleeping *s);

/* Whether a descriptor of that process is one that is asked for. */
typedef bool (*descriptor_fn)(const void *arg, pid_t pid, unsigned long long fd);

/* It was on a processor, or wanted one. */
bool sleeping_is_running(const struct sleeping *s);

/* It waits for input on such a descriptor, be it beside others. What is seen of descriptors and memory is of
 * a later moment than the system call: see sleeping_still. */
bool sleeping_for(const struct sleeping *s, descriptor_fn is, const void *arg);

/* It wakes by itself before long: a program that waits for less than half a second is at work. */
bool sleeping_briefly(const struct sleeping *s);

/* As briefly, be it in a call that waits for nothing but that: what looks for input in between can be doing
 * so. */
bool sleeping_nap(const struct sleeping *s);

/* The call is one of those that wait for input. */
bool sleeping_for_input(const struct sleeping *s);

#endif
