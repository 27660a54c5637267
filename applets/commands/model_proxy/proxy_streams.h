/* Streams of the providers, planned from a whole answer: plan->answer is the compact text of an object. Where
 * it makes no sense as an answer of that provider: -1. */
#ifndef APPLETS_MODEL_PROXY_PROXY_STREAMS_H
#define APPLETS_MODEL_PROXY_PROXY_STREAMS_H

#include <stdbool.h>

#include "err.h"
#include "proxy_events.h"

/* Chat Completions: chunks, then [DONE]. */
int stream_completions(struct events *plan, bool include_usage, struct err *err);

/* Responses: numbered events, of which `told` are out. */
int stream_responses(struct events *plan, int told, struct err *err);
/* What such a stream says before there is an answer: that it has begun (told 0), or goes on. How many are out
 * now. */
int stream_responses_wait(struct buf *out, int told);
/* And instead of one, of an error's body in OpenAI's dialect. */
void stream_responses_error(struct buf *out, int told, struct span body);
/* The member of a failed response that says why, of the same. */
void stream_responses_put_error(struct buf *members, struct span body);

/* Messages: message_start, which is sent before there is an answer; the rest. */
void stream_messages_start(struct buf *out, struct span model);
int stream_messages(struct events *plan, struct err *err);

/* Ollama's: what is asked as chat completions, and their answer as Ollama's, whole or in lines. */
void ollama_request(struct buf *out, struct span body);
int stream_ollama(struct events *plan, struct span model, bool chat, bool stream, struct err *err);
void stream_ollama_wait(struct buf *out, struct span model, bool chat);

/* generateContent: one chunk. */
void stream_google(struct events *plan);

/* ---- for those who make plans ---- */

/* A member's value; s == NULL where there is none or it is null. */
struct span stream_member(struct span object, const char *key);
/* A member that is a string with its quotes: "" where there is none. */
struct span stream_string(struct span object, const char *key);
/* Elements of a member that is an array, as json_element; false at the end, or where it is none. */
bool stream_element(struct span object, const char *key, size_t *at, struct span *value);
/* Appends `,"key":value`; nothing where value.s is NULL. */
void stream_put(struct events *plan, const char *key, struct span value);

#endif
