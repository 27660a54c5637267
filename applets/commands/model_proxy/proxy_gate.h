/* Whose requests are answered: those of programs, not those of web pages.
 *
 * A browser of this machine asks on behalf of any page that it shows. What a page may send to another origin
 * without asking is no JSON by its type, or names the page's origin, and it can't ask (OPTIONS is refused); a
 * page whose own name was pointed at this machine says that name in Host. */
#ifndef APPLETS_MODEL_PROXY_PROXY_GATE_H
#define APPLETS_MODEL_PROXY_PROXY_GATE_H

#include "http_parse.h"

/* 0: it may pass; else the status of the refusal, and why in *why. */
int proxy_gate(const struct http_parser *head, struct buf *why);

#endif
