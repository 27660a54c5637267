/* One side of a copy: a path here, a path in a target, or a stream of ours. */
#ifndef CP_SIDE_H
#define CP_SIDE_H

#include <stdbool.h>

#include "host/inject/inject_types.h"
#include "host/inject/target.h"

struct side {
    bool stream;     /* "-" */
    bool remote;     /* in the target */
    struct target t; /* where it is one */
    char *path;
};

/* Reads TARGET:PATH, PATH or "-". -1 with ERR_PARAMS. */
int side_parse(struct side *s, const char *text, const struct runtime_options *options, struct err *err);
void side_release(struct side *s);

/* A half of ours (commands/transfer) that runs at a side. */
struct half {
    char **words;      /* of its command line; end with NULL */
    pid_t pid;         /* 0: none */
    int in, out, err;  /* its stdin, stdout and stderr */
    const char *where; /* for messages */
};

/* Starts n of them at once. The exit status, after a message where it is not EXIT_OK. */
int side_start(const char *applet, const struct side *s, const struct inject_options *o, struct half *halves,
               int n);

#endif
