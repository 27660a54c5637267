/* What is changed of requests before they are passed on. */
#ifndef APPLETS_MODEL_PROXY_RULES_H
#define APPLETS_MODEL_PROXY_RULES_H

#include "proxy_calls.h"

#define RULES_MAX 64

struct rule {
    char *name;  /* of a parameter, with dots for those inside of others; a pattern for names of models */
    char *value; /* JSON; NULL: it is removed */
};
struct rules {
    struct rule models[RULES_MAX], changes[RULES_MAX];
    int n_models, n_changes;
};

/* "NAME=VALUE", or "NAME" alone where `removes`. NULL, or what is wrong with it. */
const char *rules_model(struct rules *rules, const char *text);
const char *rules_change(struct rules *rules, const char *text, bool removes);

/* Changes what is asked: the body, and the path, where the model stands in it. */
void rules_apply(const struct rules *rules, struct proxy_asked *asked, struct proxy_request *request);
void rules_release(struct rules *rules);

#endif
