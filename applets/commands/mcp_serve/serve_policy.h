#ifndef APPLETS_MCP_SERVE_SERVE_POLICY_H
#define APPLETS_MCP_SERVE_SERVE_POLICY_H

#include "err.h"
#include "mcp_tool.h"

#ifdef TOOLBOX_GUEST
#define serve_policy_offers(t) true
#define serve_policy_enter(t, err) 0
#else
/* From now on all that is served is held by that policy (commands/confine/server_policy.h): in a place of its
 * own, whose server has it, and which is gone with this process and all that was started, however it ends. */
int serve_policy_begin(const char *file, struct err *err);
/* Waits until it is gone. */
void serve_policy_end(void);
/* Whether all that a tool calls may be called. */
bool serve_policy_offers(const struct mcp_tool *t);
/* In the process that does one call of it: what touches files is confined there. */
int serve_policy_enter(const struct mcp_tool *t, struct err *err);
#endif

#endif
