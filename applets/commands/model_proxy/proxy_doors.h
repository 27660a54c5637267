/* Where the proxy listens. */
#ifndef APPLETS_MODEL_PROXY_PROXY_DOORS_H
#define APPLETS_MODEL_PROXY_PROXY_DOORS_H

#include <stdbool.h>
#include <stddef.h>

#define DOORS_MAX 8

struct doors {
    int fds[DOORS_MAX];
    size_t n;
};

/* Listens at `port` of both addresses of localhost. EXIT_OK, or the exit status: it was said why. */
int proxy_doors_open_locally(struct doors *d, const char *port);
/* Or at each of these places. */
int proxy_doors_open(struct doors *d, const char *const *places, size_t n);

/* Says where, for who started it; of localhost once. */
void proxy_doors_tell(const struct doors *d, bool locally);

#endif
