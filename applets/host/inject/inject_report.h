/* What became of a target, as JSON and for people. */
#ifndef INJECT_REPORT_H
#define INJECT_REPORT_H

#include "host/inject/inject_types.h"

/* Appends one JSON object. */
void report_json(const struct inject_result *r, struct buf *out);

/* Appends how it went, step by step. */
void report_steps(const struct inject_result *r, struct buf *out);
/* Appends one line, or for a failure a few. */
void report_text(const struct inject_result *r, const char *applet, struct buf *out);

#endif
