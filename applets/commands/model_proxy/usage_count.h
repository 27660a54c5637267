/* How many tokens an answer says it has cost. */
#ifndef APPLETS_MODEL_PROXY_USAGE_COUNT_H
#define APPLETS_MODEL_PROXY_USAGE_COUNT_H

#include "span.h"

/* Of a whole answer, or of a stream of any dialect; -1: it doesn't say. */
long long usage_count(struct span answer);

#endif
