/* Choosing files: for an input that takes files, for its label, or for what asks for some when it is clicked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "element.h"
#include "mem.h"
#include "web.h"

#define UPLOAD_MS 30000

/* The input itself, or "one" where that takes no more; what isn't one, nor a label of one, is to be clicked.
 */
static const char input_function[] =
    "function(n){let e=this.nodeType===1?this:this.parentElement;"
    "if(e.localName!=='input'){const "
    "l=e.closest('label');e=l&&l.control||e.querySelector('input[type=file]')||e}"
    "return e.type!=='file'?null:n>1&&!e.multiple?'one':e}";

static size_t count_files(const struct action *a)
{
    struct span list = {a->params.raw.s, a->params.raw.n}, path;
    size_t n = 0;
    for (size_t at = 0; json_element(list, &at, &path);)
        n++;
    return n;
}

static void too_many(struct action *a)
{
    step_fail(a, "element %lld takes one file, not several", a->params.element_id);
}

static void check_files(struct action *a)
{
    struct span list = {a->params.raw.s, a->params.raw.n}, path;
    for (size_t at = 0; json_element(list, &at, &path);) {
        struct buf name BUF_AUTO = BUF_INIT;
        struct stat st;
        json_string_text(path, &name);
        if (*buf_str(&name) != '/') {
            step_fail(a, "'%.300s' is no absolute path", buf_str(&name));
            return;
        }
        int wrong = stat(name.data, &st) < 0 ? errno : S_ISDIR(st.st_mode) ? EISDIR : 0;
        if (wrong) {
            step_fail(a, "'%.300s' can't be sent: %s", name.data, err_text(wrong));
            return;
        }
    }
    if (count_files(a) == 0)
        step_fail(a, "no file is named");
    else
        step_next(a);
}

static void look(struct action *a)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    json_member_string(&params, "objectId", a->element.object);
    json_member_string(&params, "functionDeclaration", input_function);
    buf_addf(&params, ",\"arguments\":[{\"value\":%zu}]}", count_files(a));
    step_ask(a, a->element.session, "Runtime.callFunctionOn", &params, UPLOAD_MS);
}

/* By the member that says of what: objectId, or backendNodeId. */
static void set_files(struct action *a, const char *session, const char *object, long long node)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    if (object)
        json_member_string(&params, "objectId", object);
    else
        json_member_int(&params, "backendNodeId", node);
    json_key(&params, "files");
    buf_add(&params, a->params.raw.s, a->params.raw.n);
    buf_addc(&params, '}');
    step_ask(a, session, "DOM.setFileInputFiles", &params, UPLOAD_MS);
}

static void begin_click(struct action *a)
{
    a->web->tabs.chooser = (struct chooser){.wanted = true};
    step_next(a);
}

static void set_chosen(struct action *a)
{
    const struct chooser *c = &a->web->tabs.chooser;
    if (c->session && c->single && count_files(a) > 1)
        too_many(a);
    else if (c->session)
        set_files(a, c->session, NULL, c->backend);
    else
        step_fail(a, "element %lld takes no files, and asks for none when it is clicked",
                  a->params.element_id);
}

static const step_fn chooser_steps[] = {
    begin_click, element_find, element_object, element_click, step_await_idle, set_chosen, NULL};

static void looked(struct action *a)
{
    struct span result;
    struct buf id BUF_AUTO = BUF_INIT;
    bool there = json_member(a->asked.result, "result", &result, NULL);
    if (there && member_text(result, "value", &id))
        too_many(a);
    else if (there && member_text(result, "objectId", &id))
        set_files(a, a->element.session, buf_str(&id), 0);
    else
        step_branch(a, chooser_steps);
}

const step_fn upload_steps[] = {check_files, element_find, element_object, look, looked, NULL};
