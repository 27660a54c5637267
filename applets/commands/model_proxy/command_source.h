/* Answers of a program: each call of the proxy is a line of JSON on its stdin, {"method", "params"} as for a
 * service, and the answer is a line on its stdout: {"result"} or {"error"}, which is a text or an object
 * {"status", "message", "headers"}; or the result itself. It is run by sh, once for each call. */
#ifndef APPLETS_MODEL_PROXY_COMMAND_SOURCE_H
#define APPLETS_MODEL_PROXY_COMMAND_SOURCE_H

#include "proxy_service.h"
#include "limits.h"

struct command_source {
    struct loop *loop;
    struct slots *slots;
    const char *command;
};

struct proxy_source command_source(struct command_source *of);

#endif
