/* How many tokens a request comes to, without a tokenizer. */
#ifndef APPLETS_MODEL_PROXY_PROXY_TOKENS_H
#define APPLETS_MODEL_PROXY_PROXY_TOKENS_H

#include "span.h"

/* For JSON: rather too many than too few, since clients leave out, or sum up, what is too much. */
long long tokens_estimate(struct span json);

#endif
