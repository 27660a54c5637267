/* What the head of a request has to say, and what of its body has to be known before it is taken. */
#ifndef APPLETS_MCP_SERVE_SERVE_HEAD_H
#define APPLETS_MCP_SERVE_SERVE_HEAD_H

#include <stdbool.h>

#include "err.h"
#include "http_parse.h"
#include "json.h"

struct body_look {
    struct span method, name, id, version; /* s == NULL: none; `version` of _meta */
    struct span wanted;                    /* the revision, of one that begins a session */
    bool asks;                             /* something in it is to be answered */
    bool initialize;                       /* it begins a session */
    bool later;                            /* its answer may take its time */
};

void serve_look(struct span body, struct body_look *look);

/* Whether a client may ask at all. 0, or a status with *why. `token`: NULL: none is asked for. `known`: it
 * has shown a certificate. */
int serve_may_ask(const struct http_parser *head, const char *token, bool known, struct buf *why);

/* Whether head and body fit each other. -1 with the error that is to be answered. */
int serve_check_head(const struct http_parser *head, const struct body_look *look, struct err *err);

/* Whether it takes an answer of that type. */
bool serve_accepts(const struct http_parser *head, const char *type);

#endif
