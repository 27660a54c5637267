/* Random bytes, fit for secrets. */
#ifndef CORE_RANDOM_H
#define CORE_RANDOM_H

#include <stddef.h>

/* 0, or -1 where there is neither getrandom nor /dev/urandom. */
int random_bytes(void *out, size_t n);

#endif
