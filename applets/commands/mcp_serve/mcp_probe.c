#include "mcp_tools.h"

#include "relocate.h"
#include "commands/probe/probe_controller.h"
#include "commands/probe/probe_report.h"

int mcp_probe(struct work *w, struct err *err)
{
    struct probe p;
    if (code_unpack(CODE_probe, err) < 0)
        return -1;
    probe_collect(&p);
    probe_json(&p, &w->structured);
    buf_truncate(&w->structured, w->structured.len - 1); /* its newline */
    probe_release(&p);
    return 0;
}
