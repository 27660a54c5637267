/* Responses that are made while nobody waits for them ("background" of the Responses API), and are fetched,
 * cancelled and deleted by an id. */
#ifndef APPLETS_MODEL_PROXY_PROXY_BACKGROUND_H
#define APPLETS_MODEL_PROXY_PROXY_BACKGROUND_H

#include "proxy_calls.h"

struct background;

/* A new one, of the request with this body; `stop` ends its call. NULL: there are too many. */
struct background *background_new(struct proxy *proxy, struct span body, void (*stop)(void *call),
                                  void *call);
/* Answers with it, as queued. */
void background_tell(const struct background *b, struct proxy_conn *conn);
/* Its answer, or the error of OpenAI's dialect instead of one. Then its call is no more. */
void background_done(struct background *b, struct span answer);
void background_failed(struct background *b, struct span error);

/* A request that is about one, or would be if there were one of that id: true, it is answered. */
bool background_answer(struct proxy *proxy, const struct proxy_asked *asked);

/* All of them, with their calls. */
void background_end(struct proxy *proxy);

#endif
