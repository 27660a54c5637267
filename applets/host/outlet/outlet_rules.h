/* What a proxy of ours lets through: names and addresses with their ports (`toolbox forward --allow`). */
#ifndef OUTLET_RULES_H
#define OUTLET_RULES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "err.h"

#define OUTLET_HOST_MAX 254 /* a name and its end */

/* A host as it is compared: a name in lower case without a stop at its end, an address in its shortest form,
 * one of IPv4 that is written as one of IPv6 as that of IPv4. False: it is neither. An address is four
 * decimal numbers or what IPv6 allows, without brackets: nothing else that a resolver would take for one. */
bool outlet_host(const char *text, size_t n, char host[OUTLET_HOST_MAX]);
/* A number from 1 to 65535, or 0. */
unsigned outlet_port(const char *text, size_t n);

struct outlet_rule {
    char host[OUTLET_HOST_MAX]; /* "": an address */
    bool below;                 /* what ends with that, behind a stop; of "" everything */
    struct in6_addr address;
    unsigned bits; /* of it that count */
    long port;     /* 0: 80 and 443; -1: any */
};

struct outlet_rules {
    struct outlet_rule *list;
    size_t n;
};

/* Adds those of a list with commas: NAME, *.NAME, *, ADDRESS or ADDRESS/BITS, each with :PORT or :* behind
 * it. -1 with ERR_PARAMS. */
int outlet_rules_add(struct outlet_rules *rules, const char *words, struct err *err);
void outlet_rules_release(struct outlet_rules *rules);

/* Whether a host (outlet_host) is named, with that port. */
bool outlet_names(const struct outlet_rules *rules, const char *host, unsigned port);
/* Whether an address that a name has led to may be connected to: it is one of the public network, or named
 * itself. */
bool outlet_reaches(const void *rules, const struct sockaddr *at);

#endif
