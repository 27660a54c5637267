/* Output as text, and how much of it one answer may bring. */
#ifndef APPLETS_EXEC_REMOTE_JOB_TEXT_H
#define APPLETS_EXEC_REMOTE_JOB_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

#define JOB_ANSWER_MAX (1u << 20)  /* new bytes of a stream in one answer */
#define JOB_UNACKED_MAX (4u << 20) /* text of a stream with which nothing new is added */

/* Appends bytes as text. `latin1`: each is a character, otherwise it is UTF-8; `final`: none come behind. How
 * many were taken: all, but for the beginning of a character that is not complete. */
size_t text_add(struct buf *text, const char *bytes, size_t n, bool latin1, bool final);

/* The way back from text whose characters are all below U+0100, in place; the new length. */
size_t text_to_latin1(char *text, size_t n);
size_t text_chars(const char *text, size_t n);
/* How many bytes a text stands for. */
static inline size_t text_bytes(const char *text, size_t n, bool latin1)
{
    return latin1 ? text_chars(text, n) : n;
}

/* What an answer may still bring of a stream, when `text` is not acknowledged: new bytes, and new bytes of
 * JSON. The latter matter for what isn't text: a control character is one byte, and six in JSON. Nothing:
 * either is 0. */
struct text_room {
    size_t bytes, json;
};
struct text_room text_room(const struct buf *text);
/* How many bytes of those that are left to take in one go; and that it was done. */
size_t text_step(const struct text_room *room, unsigned long long left);
void text_room_use(struct text_room *room, size_t step, const char *text, size_t n);

/* In the message of a write that was refused because the job has too much to read already: nothing of it was
 * taken, and it can be made again. */
#define JOB_STDIN_CLOSED "stdin of job %ld has been closed"
#define JOB_STDIN_FULL "of its stdin yet"

#endif
