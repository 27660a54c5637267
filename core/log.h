/* What a server and its keepers did, for people: the file "log" in their place, one line an event.
 *
 * Lines say who did what and how it ended, never what a request holds. The file is private (0600) and
 * bounded: beyond LOG_MAX bytes it becomes "log.old", whose predecessor goes. Nothing is kept open, so it may
 * be removed at any moment. Whatever else has its name (a link, a pipe, another user's file) is left alone,
 * and nothing is written then; nor is it an error when nothing can be: a log never stops the work. */
#ifndef CORE_LOG_H
#define CORE_LOG_H

#include <stdbool.h>

#define LOG_MAX (256 << 10)

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

extern const char *const log_level_names[]; /* in this order; ends with NULL */

/* Whether lines of this level are written; -1 for a word that is no level. At first the level is LOG_INFO. */
bool log_wanted(enum log_level level);
int log_level_of(const char *name);
void log_set_level(enum log_level level);
enum log_level log_current_level(void);

/* Where to: a directory's descriptor (-1: nowhere, as at first), and standard error as well. Both hold for
 * processes that are forked from this one. */
void log_open(int dirfd, bool to_stderr);

/* Appends one line with time, process and level; control characters become '?'. Keeps errno. */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
