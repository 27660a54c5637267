/* What `probe` found out, in words: for programs, and for people. Both append to `out`. */
#ifndef PROBE_REPORT_H
#define PROBE_REPORT_H

#include "buf.h"
#include "probe_types.h"

/* One JSON object on one line. What is unknown is null. */
void probe_json(const struct probe *p, struct buf *out);
/* A table: a name and what was found on every line. */
void probe_table(const struct probe *p, struct buf *out);

#endif
