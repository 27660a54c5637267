/* Tables of the MCP methods' params (params.h). */
#ifndef APPLETS_MCP_MCP_PARAMS_H
#define APPLETS_MCP_MCP_PARAMS_H

#include "mcp_bridge.h"
#include "mcp_types.h"

extern const struct params_table mcp_launch_params; /* struct mcp_launch_params */
/* struct mcp_session_params: session_id, … */
extern const struct params_table mcp_session_params;
extern const struct params_table mcp_request_params;      /* … request, timeout */
extern const struct params_table mcp_response_params;     /* … response */
extern const struct params_table mcp_requests_params;     /* … max, timeout */
extern const struct params_table mcp_notification_params; /* … notification */
extern const struct params_table mcp_follow_params;       /* session_id, cursor */
extern const struct params_table mcp_read_params;         /* … max */

/* What the table can't say of a launch. */
int mcp_launch_check(const void *params, struct err *err);
bool mcp_launch_is_ascii(const struct mcp_launch_params *p);
enum mcp_bad_bytes mcp_launch_bad_bytes(const struct mcp_launch_params *p);

#endif
