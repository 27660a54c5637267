/* The providers' ways of saying that something went wrong. */
#ifndef APPLETS_MODEL_PROXY_PROXY_DIALECT_H
#define APPLETS_MODEL_PROXY_PROXY_DIALECT_H

#include "buf.h"
#include "json.h"

enum dialect { OPENAI, ANTHROPIC, GOOGLE, OLLAMA, DIALECTS };

/* Appends the body of an error. `more`: an object whose members OpenAI's dialect has beside or instead of
 * ours (s == NULL: none). */
void dialect_error(struct buf *out, enum dialect dialect, int status, struct span message, struct span more);

/* Whether a field of a provider's answer is for its clients: when to try again, limits, the request's id. */
bool dialect_passes(const char *field);

#endif
