/* The name that the first message of TLS asks for. */
#ifndef OUTLET_HELLO_H
#define OUTLET_HELLO_H

#include <stdbool.h>

#include "host/outlet/outlet_rules.h"
#include "span.h"

#define OUTLET_HELLO_MAX 16384

struct outlet_hello {
    char name[OUTLET_HOST_MAX]; /* as outlet_host writes it; "": none */
    bool encrypted;             /* there is another one that can't be read (ECH), or a stand-in for one */
};

/* 1: it is there; 0: more is needed; -1: that is no such message. It may be cut into records anywhere. */
int outlet_hello_read(struct span data, struct outlet_hello *hello);

#endif
