#include "web_behind_methods.h"

#include <stdlib.h>

#include "mem.h"
#include "web.h"
#include "web_params.h"

/* Lists of calls are elements of an array. */
static void tell(struct web *web, struct rpc_call *call, const struct buf *list)
{
    struct web_params p = WEB_PARAMS_DEFAULTS;
    p.raw.s = mem_printf("[%s]", list->len > 0 ? list->data : "");
    p.raw.n = list->len + 2;
    web_act(web, call, &p, tell_steps, false);
}

void web_upload(struct rpc_call *call, struct span params, void *ctx)
{
    struct web_list_params list = {0};
    struct web_params p = WEB_PARAMS_DEFAULTS;
    if (!rpc_unpack(call, &web_upload_params, params, &list))
        return;
    p.element_id = list.element_id;
    p.raw = (struct text){mem_dup(list.list.s, list.list.n), list.list.n};
    params_release(&web_upload_params, &list);
    web_act(ctx, call, &p, upload_steps, false);
}

void web_emulate(struct rpc_call *call, struct span params, void *ctx)
{
    struct web *web = ctx;
    struct web_emulate_params p = WEB_EMULATE_DEFAULTS;
    struct buf list BUF_AUTO = BUF_INIT;
    struct err err;
    if (!rpc_unpack(call, &web_emulate_params, params, &p))
        return;
    int result = emulate_calls(&p, &web->emulated, web->context, &list, &err);
    if (result == 0 && p.width > 0) {
        web->tabs.window.width = (int)p.width;
        web->tabs.window.height = (int)p.height;
    }
    params_release(&web_emulate_params, &p);
    if (result < 0)
        rpc_fail(call, &err);
    else
        tell(web, call, &list);
}

void web_state(struct rpc_call *call, struct span params, void *ctx)
{
    struct web *web = ctx;
    struct web_list_params list = {0};
    struct web_params p = WEB_PARAMS_DEFAULTS;
    struct buf calls BUF_AUTO = BUF_INIT;
    if (!rpc_unpack(call, &web_state_params, params, &list))
        return;
    if (list.object.s)
        state_calls(list.object, web->context, &calls);
    params_release(&web_state_params, &list);
    if (list.object.s)
        tell(web, call, &calls);
    else
        web_act(web, call, &p, state_steps, true);
}

void web_devtools(struct rpc_call *call, struct span params, void *ctx)
{
    struct web *web = ctx;
    struct web_list_params list = {0};
    struct web_params p = WEB_PARAMS_DEFAULTS;
    struct err err;
    if (!rpc_unpack(call, &web_devtools_params, params, &list))
        return;
    p.of_browser = list.browser;
    p.text = (struct text){mem_strdup(list.method.s), list.method.n};
    p.raw = (struct text){mem_dup(list.object.s ? list.object.s : "{}", list.object.s ? list.object.n : 2),
                          list.object.s ? list.object.n : 2};
    params_release(&web_devtools_params, &list);
    if (web->devtools) {
        web_act(web, call, &p, devtools_steps, true);
        return;
    }
    web_params_release(&p);
    err_set(&err, ERR_TOOL, "this session was not opened for that: web_new_session takes devtools");
    rpc_fail(call, &err);
}
