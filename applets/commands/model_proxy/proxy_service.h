/* Calls of the service on the host, by files (the form is inspect_ai's, util/_sandbox/service.py).
 *
 * A call is a file requests/ID.json in the service's directory, {"id", "method", "params"}; it gets its name
 * once it is whole. The answer is a file responses/ID.json, {"result"} or {"error"}, which may be seen before
 * it is whole; it is removed when it has been read. The directories are the host's and may appear late. */
#ifndef APPLETS_MODEL_PROXY_PROXY_SERVICE_H
#define APPLETS_MODEL_PROXY_PROXY_SERVICE_H

#include "err.h"
#include "json.h"
#include "loop.h"

struct service;

/* The answer, once, from the loop: the text of the result; or err, which says what the service or its answer
 * lacks. What `result` points into is the receiver's if he takes `text` (buf_take), else gone afterwards. */
typedef void (*service_answer_fn)(void *arg, struct span result, struct buf *text, const struct err *err);

/* Who answers the calls of the proxy: this service, or another one (command_source.h). */
struct proxy_source {
    void *of;
    /* Calls `method` with the text of an object. Its answer may take any time. */
    void *(*call)(void *of, const char *method, struct span params, service_answer_fn answer, void *arg);
    /* Nobody waits any longer. */
    void (*cancel)(void *call);
};

struct service *service_new(struct loop *loop, const char *directory);
void service_free(struct service *service); /* with the files of all calls that are open */

/* It as a source. Of a call that nobody waits for any longer the request is withdrawn, and an answer that
 * comes all the same removed. */
struct proxy_source service_source(struct service *service);

#endif
