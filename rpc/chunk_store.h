/* Where long answers lie until they are fetched: files in "answers" of the user's place (place.h), private to
 * him.
 *
 * A file's name is its handle: 32 lower-case hex digits of real randomness. Files are removed when they are
 * released and, when nobody has read them for an hour, by any later call that stores one. Root finds what
 * other users have stored as well (a call of his may run as another user), in the fixed places of all of them
 * but their home directories; nobody else looks outside of his own. */
#ifndef RPC_CHUNK_STORE_H
#define RPC_CHUNK_STORE_H

#include <stdbool.h>

#include "err.h"
#include "json.h"

#define CHUNK_HANDLE_LEN 32

bool chunk_handle_valid(const char *handle);

/* Stores an answer; gives its handle. -1 with ERR_TOOL. */
int chunk_store(struct span answer, char handle[CHUNK_HANDLE_LEN + 1], struct err *err);

/* A descriptor of a stored answer; -1 when there is none of this (valid) handle. */
int chunk_open(const char *handle);

/* Removes it, if it is there. */
void chunk_remove(const char *handle);

#endif
