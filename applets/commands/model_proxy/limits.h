/* How much may be asked: in all, each minute, at the same time. */
#ifndef APPLETS_MODEL_PROXY_LIMITS_H
#define APPLETS_MODEL_PROXY_LIMITS_H

#include "proxy_calls.h"

enum { LIMIT_REQUESTS, LIMIT_TOKENS, LIMIT_KINDS };

struct limits {
    /* 0: none */
    long long budget[LIMIT_KINDS], rate[LIMIT_KINDS];
    long long used[LIMIT_KINDS];
    double left[LIMIT_KINDS]; /* of this minute; of tokens it may be less than nothing */
    long long counted_at;     /* ms */
};

/* "requests=N,tokens=N", either or both. False: it makes no sense. */
bool limits_read(const char *text, long long limits[LIMIT_KINDS]);

/* Counts a call of a model, or refuses it in its dialect: true. */
bool limits_refuse(struct limits *l, struct proxy_conn *conn, enum dialect dialect);
/* What its answer has cost. */
void limits_used(struct limits *l, long long tokens);

/* Places for calls that go on at the same time; who finds none waits for his turn. */
struct slots {
    int most; /* 0: any number */
    int taken;
    struct slot *first;
};
struct slot {
    struct slots *of; /* NULL: it has none, and waits for none */
    struct slot *next;
    bool taken;
    void (*start)(void *arg);
    void *arg;
};
/* `start` is called when there is a place, which may be at once. */
void slot_ask(struct slots *slots, struct slot *slot, void (*start)(void *arg), void *arg);
/* It is over, or isn't wanted any more. */
void slot_leave(struct slot *slot);

#endif
