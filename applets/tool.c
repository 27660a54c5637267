#include "tool.h"

#include "tools/bash_session/bash_session.h"
#include "tools/computer/computer.h"
#include "chunk.h"
#include "tools/doctor/doctor.h"
#include "tools/exec_remote/exec_remote.h"
#include "tools/mcp/mcp.h"
#include "commands/server/server.h"
#include "tools/file/file.h"
#include "tools/text_editor/text_editor.h"
#include "tools/web_browser/web_browser.h"
#include "relocate.h"

static const struct tool chunk_tool = {.in_process = chunk_methods};

const struct tool *const *tool_list(void)
{
    static const struct tool *const tools[] = {
        &server_tool,   &bash_session_tool, &exec_remote_tool, &mcp_tool,   &web_browser_tool,
        &computer_tool, &text_editor_tool,  &chunk_tool,       &watch_tool, &file_tool,
#ifndef TOOLBOX_GUEST
        &doctor_tool,
#endif
        NULL,
    };
    relocate_rest();
    return tools;
}

void tools_sweep(int dirfd)
{
    for (const struct tool *const *at = tool_list(); *at; at++)
        if ((*at)->sweep)
            (*at)->sweep(dirfd);
}

bool tools_keep(int dirfd)
{
    bool any = false;
    for (const struct tool *const *at = tool_list(); *at; at++)
        any = any || ((*at)->keeps && (*at)->keeps(dirfd, NULL));
    return any;
}

bool tools_keep_in(int dirfd, const char *name)
{
    for (const struct tool *const *tool = tool_list(); *tool; tool++)
        if ((*tool)->keeps_in && (*tool)->keeps_in(dirfd, name))
            return true;
    return false;
}

static struct method method_of(const struct tool *tool, const char *name)
{
    const struct rpc_method *tables[] = {tool->in_process, tool->server, tool->keeper};
    for (int i = 0; i < 3; i++) {
        rpc_handler run = rpc_find(tables[i], name);
        if (run)
            return (struct method){.kind = METHOD_IN_PROCESS + (enum method_kind)i, .tool = tool, .run = run};
    }
    return (struct method){.kind = METHOD_UNKNOWN};
}

struct method tool_method(const char *name)
{
    struct method m = method_of(&server_tool, name);
    if (m.kind != METHOD_UNKNOWN)
        return m; /* without the tables of the others */
    for (const struct tool *const *at = tool_list(); m.kind == METHOD_UNKNOWN && *at; at++)
        m = method_of(*at, name);
    return m;
}

void tool_method_names(const char **names, size_t max)
{
    size_t n = 0;
    for (const struct tool *const *at = tool_list(); *at; at++) {
        const struct rpc_method *tables[] = {(*at)->in_process, (*at)->server, (*at)->keeper};
        for (int i = 0; i < 3; i++)
            for (const struct rpc_method *m = tables[i]; m && m->name && n + 1 < max; m++)
                if (m->name[0] != '_') /* between programs alone */
                    names[n++] = m->name;
    }
    names[n] = NULL;
}

rpc_handler tool_find_in_process(void *ctx, const char *name, void **handler_ctx)
{
    (void)ctx;
    *handler_ctx = NULL;
    struct method m = tool_method(name);
    return m.kind == METHOD_IN_PROCESS ? m.run : NULL;
}
