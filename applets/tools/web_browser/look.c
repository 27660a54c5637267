/* Steps that answer with something else than the page's lines: a picture, a value, its text, the tabs. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "mem.h"
#include "web.h"

#define LOOK_MS 30000
#define PICTURE_MAX 16384 /* pixels in height */

/* ---- screenshot ---- */

static void measure(struct action *a)
{
    step_ask(a, page_session(a), "Page.getLayoutMetrics", NULL, LOOK_MS);
}

static void capture(struct action *a, long long x, long long y, long long width, long long height)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_adds(&params, "{\"format\":\"png\"");
    if (height > PICTURE_MAX) {
        tabs_note(&a->web->tabs, "it is %lld pixels high: the picture ends at %d", height, PICTURE_MAX);
        height = PICTURE_MAX;
    }
    if (width > 0)
        buf_addf(&params,
                 ",\"captureBeyondViewport\":true,\"clip\":{\"x\":%lld,\"y\":%lld,\"width\":%lld,"
                 "\"height\":%lld,\"scale\":1}",
                 x, y, width < PICTURE_MAX ? width : PICTURE_MAX, height);
    buf_addc(&params, '}');
    step_ask(a, page_session(a), "Page.captureScreenshot", &params, LOOK_MS);
}

static void capture_page(struct action *a)
{
    struct span size;
    if (a->params.full_page && json_member(a->asked.result, "cssContentSize", &size, NULL))
        capture(a, 0, 0, member_number(size, "width"), member_number(size, "height"));
    else
        capture(a, 0, 0, 0, 0);
}

/* "X Y WIDTH HEIGHT" on the page; "": in a frame that doesn't know where it is. */
static const char place_function[] =
    "function(){const e=this.nodeType===1?this:this.parentElement;"
    "e.scrollIntoView({block:'nearest',behavior:'instant'});const b=e.getBoundingClientRect();"
    "let x=b.x,y=b.y,w=e.ownerDocument.defaultView;while(w!==w.top){const f=w.frameElement;if(!f)return '';"
    "const c=f.getBoundingClientRect();x+=c.x+f.clientLeft;y+=c.y+f.clientTop;w=w.parent}"
    "return [x+w.scrollX,y+w.scrollY,b.width,b.height].map(n=>Math.round(n)).join(' ')}";

static void place(struct action *a)
{
    element_call(a, place_function, NULL);
}

static void capture_element(struct action *a)
{
    struct buf said BUF_AUTO = BUF_INIT;
    long long box[4];
    element_said(a, &said);
    char *at = (char *)(uintptr_t)buf_str(&said);
    for (int i = 0; i < 4; i++)
        box[i] = strtoll(at, &at, 10);
    if (said.len == 0)
        step_fail(a, "element %lld is in a frame of another site, of which no picture can be made alone",
                  a->params.element_id);
    else if (box[2] <= 0 || box[3] <= 0)
        step_fail(a, "element %lld is not visible, so there is no picture of it", a->params.element_id);
    else
        capture(a, box[0], box[1], box[2], box[3]);
}

static void put_notes(struct action *a)
{
    if (a->web->tabs.notes.text.len > 0) {
        json_key(&a->answer, "notes");
        buf_addf(&a->answer, "[%s]", a->web->tabs.notes.text.data);
    }
    buf_addc(&a->answer, '}');
}

static void put_picture(struct action *a, const char *mime_type)
{
    struct span data;
    if (!json_member(a->asked.result, "data", &data, NULL)) {
        step_fail(a, "the browser made no picture");
        return;
    }
    buf_addc(&a->answer, '{');
    json_member_string(&a->answer, "mime_type", mime_type);
    json_key(&a->answer, "data");
    buf_add(&a->answer, data.s, data.n);
    put_notes(a);
    step_next(a);
}

static void captured(struct action *a)
{
    put_picture(a, "image/png");
}

static const step_fn page_steps[] = {measure, capture_page, captured, NULL};
static const step_fn element_steps[] = {element_find, element_object, place, capture_element, captured, NULL};

static void choose(struct action *a)
{
    if (a->params.full_page && a->params.element_id >= 0)
        step_fail(a, "either the full page or an element");
    else
        step_branch(a, a->params.element_id >= 0 ? element_steps : page_steps);
}

const step_fn screenshot_steps[] = {choose, NULL};

/* ---- PDF ---- */

static void print(struct action *a)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_adds(&params, "{\"printBackground\":true}");
    step_ask(a, page_session(a), "Page.printToPDF", &params, LOOK_MS);
}

static void printed(struct action *a)
{
    put_picture(a, "application/pdf");
}

const step_fn pdf_steps[] = {print, printed, NULL};

/* ---- evaluate ---- */

/* By reference: an object that refers to itself, or to the window, could not be told otherwise. */
static void evaluate(struct action *a)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    json_member_text(&params, "expression", a->params.expression.s, a->params.expression.n);
    buf_adds(&params, ",\"awaitPromise\":true,\"userGesture\":true,\"allowUnsafeEvalBlockedByCSP\":true}");
    step_ask(a, page_session(a), "Runtime.evaluate", &params, LOOK_MS);
}

static void exception_text(struct span details, struct buf *text)
{
    struct span exception, value;
    bool there = json_member(details, "exception", &exception, NULL);
    if (there && member_text(exception, "description", text))
        return;
    if (there && json_member(exception, "value", &value, NULL))
        buf_add(text, value.s, value.n);
    else
        member_text(details, "text", text);
}

/* The value, where JSON has one, and what else it is, where that says more. `s` NULL: it can't be told. */
static void put_value(struct action *a, struct span result, const struct buf *description)
{
    struct span value = {"null", 4};
    const char *what = buf_str(description);
    bool there = result.s && json_member(result, "value", &value, NULL);
    bool plain = strcmp(what, "Object") == 0 || strncmp(what, "Array(", 6) == 0;
    json_key(&a->answer, "value");
    buf_add(&a->answer, value.s, value.n);
    if (description->len > 0 && !(there && plain))
        json_member_text(&a->answer, "description", what, description->len);
}

static void end_evaluation(struct action *a)
{
    put_notes(a);
    step_next(a);
}

static const step_fn rest_steps[] = {step_await_idle, end_evaluation, NULL};

static void evaluated(struct action *a)
{
    struct span result, details, value;
    struct buf text BUF_AUTO = BUF_INIT;
    struct buf object BUF_AUTO = BUF_INIT;
    if (json_member(a->asked.result, "exceptionDetails", &details, NULL)) {
        exception_text(details, &text);
        step_fail(a, "%s", buf_str(&text));
        return;
    }
    if (!json_member(a->asked.result, "result", &result, NULL) || !member_text(result, "type", &text)) {
        step_fail(a, "the browser gave no value");
        return;
    }
    buf_addc(&a->answer, '{');
    json_member_text(&a->answer, "type", buf_str(&text), text.len);
    buf_truncate(&text, 0);
    if (!member_text(result, "unserializableValue", &text) && !json_member(result, "value", &value, NULL))
        member_text(result, "description", &text);
    if (member_text(result, "objectId", &object)) {
        a->params.value.s = buf_take(&text, &a->params.value.n);
        a->element.session = mem_strdup(page_session(a));
        a->element.object = buf_take(&object, NULL);
        element_call(a, "function(){return this}", NULL);
        return;
    }
    put_value(a, result, &text);
    step_branch(a, rest_steps);
}

static void have_value(struct action *a)
{
    struct span result = {0};
    struct buf text BUF_AUTO = BUF_INIT;
    buf_add(&text, a->params.value.s, a->params.value.n);
    if (a->asked.result.s)
        json_member(a->asked.result, "result", &result, NULL);
    put_value(a, result, &text);
    step_branch(a, rest_steps);
}

const step_fn evaluate_steps[] = {evaluate, evaluated, have_value, NULL};

/* ---- text ---- */

/* What stands there, as Markdown: of the main region, where there is one. */
#define MARKDOWN                                                                                             \
    "(()=>{const "                                                                                           \
    "B=/^(P|DIV|SECTION|ARTICLE|MAIN|HEADER|FOOTER|NAV|ASIDE|FIGURE|FORM|FIELDSET|D[LTD]|LI|DETAILS|"        \
    "SUMMARY|ADDRESS|DIALOG)$/,"                                                                             \
    "kids=(e,p)=>[...(e.localName==='slot'&&e.assignedNodes().length?e.assignedNodes():"                     \
    "(e.shadowRoot||e).childNodes)].map(n=>md(n,p)).join(''),k=s=>'\\n\\n'+s+'\\n\\n',"                      \
    "md=(n,p)=>{if(n.nodeType===3)return n.data.replace(/\\s+/g,' ');"                                       \
    "const T=n.nodeName.toUpperCase();"                                                                      \
    "if(n.nodeType!==1||/^(SCRIPT|STYLE|NOSCRIPT|TEMPLATE|HEAD)$/.test(T))return '';"                        \
    "const s=getComputedStyle(n);if(s.display==='none'||s.visibility==='hidden')return '';"                  \
    "if(T==='BR')return '\\n';if(T==='HR')return k('---');if(T==='PRE')return "                              \
    "k('```\\n'+n.textContent.trimEnd()"                                                                     \
    "+'\\n```');if(T==='IMG')return n.alt?'!['+n.alt+']('+(/^data:/.test(n.src)?'':n.src)+')':'';"           \
    "if(T==='TABLE'){const r=[...n.rows].map(r=>'| "                                                         \
    "'+[...r.cells].map(c=>kids(c).trim().replace(/\\s*\\n\\s*/g,"                                           \
    "' ').replace(/\\|/g,'\\\\|')).join(' | ')+' |');if(r[0])r.splice(1,0,'|'+' --- "                        \
    "|'.repeat(n.rows[0].cells"                                                                              \
    ".length));return k(r.join('\\n'))}"                                                                     \
    "if(T==='UL'||T==='OL')return k([...n.children].map((l,i)=>(T==='OL'?i+1+'. ':'- ')+kids(l).trim()"      \
    ".replace(/\\n+/g,'\\n  ')).join('\\n'));"                                                               \
    "if(/^(INPUT|TEXTAREA|SELECT)$/.test(T))return "                                                         \
    "n.type==='hidden'||n.type==='password'?'':'['+(n.selectedOptions"                                       \
    "?[...n.selectedOptions].map(o=>o.text).join(', '):/^(checkbox|radio)$/.test(n.type)?(n.checked?'x':' "  \
    "'):n.value)+']';"                                                                                       \
    "const x=kids(n),t=x.trim();if(/^H[1-6]$/.test(T))return k('#'.repeat(T[1])+' '+t);"                     \
    "if(T==='A')return t&&n.href?'['+t+']('+n.href+')':x;"                                                   \
    "if(T==='STRONG'||T==='B')return t?'**'+t+'**':x;if(T==='EM'||T==='I')return t?'*'+t+'*':x;"             \
    "if(T==='CODE')return '`'+t+'`';if(T==='BLOCKQUOTE')return k(t.replace(/^/gm,'> '));"                    \
    "return B.test(T)?k(t):x};"                                                                              \
    "return md(document.querySelector('main,[role=main]')||document.body).replace(/[ \\t]+\\n/g,'\\n')"      \
    ".replace(/\\n[ \\t]+(?=\\n)/g,'\\n').replace(/\\n{3,}/g,'\\n\\n').trim()})()"

static const struct {
    const char *name, *expression;
} formats[] = {
    {"text", "(document.body||document.documentElement||{}).innerText||''"},
    {"markdown", MARKDOWN},
    {"html", "document.documentElement.outerHTML"},
};

static void ask_text(struct action *a)
{
    struct buf params BUF_AUTO = BUF_INIT;
    const char *format = a->params.format.s ? a->params.format.s : formats->name, *expression = NULL;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(format, formats[i].name) == 0)
            expression = formats[i].expression;
    if (!expression) {
        step_fail(a, "there is no format '%.40s': text, markdown and html are", format);
        return;
    }
    char *whole MEM_AUTO =
        mem_printf("(([t,x],o,n)=>[t,x.slice(o,n?o+n:undefined),x.length])([document.title,%s],%lld,%lld)",
                   expression, a->params.offset, a->params.max);
    buf_addc(&params, '{');
    json_member_string(&params, "expression", whole);
    json_member_bool(&params, "returnByValue", true);
    buf_addc(&params, '}');
    step_ask(a, page_session(a), "Runtime.evaluate", &params, LOOK_MS);
}

static void have_text(struct action *a)
{
    struct span result, list = {"\"\"", 2}, title = {"\"\"", 2}, text = {"\"\"", 2}, total;
    long long end = a->params.offset + a->params.max;
    size_t at = 0;
    const struct tab *t = a->web->tabs.first;
    const char *url = t ? t->url : "";
    if (json_member(a->asked.result, "result", &result, NULL) && json_member(result, "value", &list, NULL) &&
        json_kind(list) == JSON_ARRAY && json_element(list, &at, &title))
        json_element(list, &at, &text);
    buf_addc(&a->answer, '{');
    json_member_text(&a->answer, "web_url", url, strcspn(url, "?"));
    json_key(&a->answer, "title");
    buf_add(&a->answer, title.s, title.n);
    json_key(&a->answer, "text");
    buf_add(&a->answer, text.s, text.n);
    if (a->params.max > 0 && json_kind(list) == JSON_ARRAY && json_element(list, &at, &total)) {
        long long n = strtoll(total.s, NULL, 10);
        json_member_int(&a->answer, "total", n);
        json_member_int_or_null(&a->answer, "next_offset", end < n ? end : -1);
    }
    buf_addc(&a->answer, '}');
    step_next(a);
}

const step_fn text_steps[] = {ask_text, have_text, NULL};

/* ---- tabs ---- */

static void ask_targets(struct action *a)
{
    step_ask(a, "", "Target.getTargets", NULL, LOOK_MS);
}

static void put_title(struct buf *out, struct span targets, const char *target)
{
    struct span info, id, title;
    json_key(out, "title");
    for (size_t at = 0; json_element(targets, &at, &info);)
        if (json_member(info, "targetId", &id, NULL) && json_string_is(id, target) &&
            json_member(info, "title", &title, NULL)) {
            buf_add(out, title.s, title.n);
            return;
        }
    buf_adds(out, "\"\"");
}

static void list_tabs(struct action *a)
{
    const struct tabs *tabs = &a->web->tabs;
    struct span targets = {"[]", 2};
    json_member(a->asked.result, "targetInfos", &targets, NULL);
    buf_addc(&a->answer, '[');
    for (int i = 0; i < tabs->next_number; i++) {
        const struct tab *t = tabs_find(tabs, i);
        if (!t)
            continue;
        buf_adds(&a->answer, a->answer.len > 1 ? ",{" : "{");
        json_member_int(&a->answer, "tab", i);
        json_member_string(&a->answer, "url", t->url);
        put_title(&a->answer, targets, t->target);
        json_member_bool(&a->answer, "current", t == tabs->first);
        buf_addc(&a->answer, '}');
    }
    buf_addc(&a->answer, ']');
    step_next(a);
}

const step_fn tabs_steps[] = {ask_targets, list_tabs, NULL};
