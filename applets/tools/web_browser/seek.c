/* Looking for something on the page: waiting until it is there, or gone; and finding a text. */
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "io.h"
#include "mem.h"
#include "page_text.h"

#define ASK_MS 10000
#define LOOK_AGAIN_MS 200
#define QUIET_LOOKS 3 /* in a row, without anything under way: the network is idle */

/* ---- waiting ---- */

/* Whether a text can be seen, also in shadow trees that are open and in frames of the same site. White space
 * and capitals don't matter. */
static const char seen_function[] =
    "(v=>{const n=s=>s.replace(/\\s+/g,' ').trim().toLowerCase(),w=n(v);"
    "const look=r=>{const b=r.body||r;if(b.innerText&&n(b.innerText).includes(w))return true;"
    "for(const e of r.querySelectorAll('*')){"
    "if(e.shadowRoot&&([...e.shadowRoot.children].some(c=>c.innerText&&n(c.innerText).includes(w))||"
    "look(e.shadowRoot)))return true;"
    "if(/^i?frame$/.test(e.localName)&&e.contentDocument&&e.getClientRects().length&&look(e.contentDocument))"
    "return true;"
    "if(e.localName==='input'&&n(e.value).includes(w)&&e.getClientRects().length)return true}return false};"
    "return String(look(document))})";

static const char ready_function[] =
    "function(){const e=this.nodeType===1?this:this.parentElement;if(!e||!e.isConnected)return 'false';"
    "const b=e.getBoundingClientRect(),s=getComputedStyle(e);let "
    "d=false;try{d=e.matches(':disabled')}catch(x){}"
    "return String(b.width>0&&b.height>0&&s.visibility==='visible'&&!d&&e.ariaDisabled!=='true')}";

static void look(struct action *a);
static const step_fn again_steps[3];

static void look_again(struct action *a)
{
    step_branch(a, again_steps);
}

/* What it waits for has not come, so far. */
static void wait_on(struct action *a)
{
    const struct web_params *p = &a->params;
    struct buf what BUF_AUTO = BUF_INIT;
    long long left = a->rest.until_ms - now_ms();
    if (left > 0) {
        action_limit(a, left < LOOK_AGAIN_MS ? (int)left : LOOK_AGAIN_MS, look_again);
        return;
    }
    const struct text *text = p->text.s ? &p->text : p->gone.s ? &p->gone : &p->url;
    if (text->s)
        page_text_quoted(&what, text->s, text->n, PAGE_VALUE_MAX / 4);
    step_fail(a, "%s %s within %lld s; this is the page as it is",
              p->element_id >= 0 ? "the element"
              : p->network_idle  ? "the network"
                                 : buf_str(&what),
              p->element_id >= 0 ? "was not ready to be used"
              : p->network_idle  ? "was not idle"
              : p->gone.s        ? "has not gone"
              : p->text.s        ? "has not come"
                                 : "is not in the address",
              p->timeout);
}

static void looked(struct action *a)
{
    struct buf said BUF_AUTO = BUF_INIT;
    element_said(a, &said);
    if (a->asked.result.s && strcmp(buf_str(&said), a->params.gone.s ? "false" : "true") == 0)
        step_done(a);
    else
        wait_on(a);
}

static void ask_ready(struct action *a)
{
    element_call(a, ready_function, NULL);
}

static const step_fn element_steps[] = {element_find, element_object, ask_ready, looked, NULL};

static void put_call(struct buf *params, const char *function, const struct text *argument)
{
    struct buf expression BUF_AUTO = BUF_INIT;
    buf_addf(&expression, "%s(", function);
    json_put_string(&expression, argument->s, argument->n);
    buf_addc(&expression, ')');
    buf_addc(params, '{');
    json_member_text(params, "expression", buf_str(&expression), expression.len);
    buf_addc(params, '}');
}

static void look(struct action *a)
{
    const struct web_params *p = &a->params;
    const struct tab *t = a->web->tabs.first;
    struct buf params BUF_AUTO = BUF_INIT;
    if (!t) {
        step_fail(a, "no page is open; web_go opens one");
    } else if (p->element_id >= 0) {
        step_branch(a, element_steps);
    } else if (p->url.s || p->network_idle) {
        bool quiet =
            t->is.loaded && t->navigation == NAVIGATION_NONE && t->loading.n == 0 && t->requests.n == 0;
        a->rest.rounds = quiet ? a->rest.rounds + 1 : 0;
        if (p->url.s ? strstr(t->url, p->url.s) != NULL : a->rest.rounds >= QUIET_LOOKS)
            step_done(a);
        else
            wait_on(a);
    } else {
        put_call(&params, seen_function, p->gone.s ? &p->gone : &p->text);
        step_ask_lax(a, t->session, "Runtime.evaluate", &params, ASK_MS);
    }
}

static void begin(struct action *a)
{
    a->rest.until_ms = now_ms() + a->params.timeout * 1000;
    a->rest.rounds = 0;
    step_branch(a, again_steps);
}

static const step_fn again_steps[3] = {look, looked, NULL};
const step_fn wait_steps[] = {begin, NULL};

/* ---- finding ---- */

/* Goes to the next place where a text is, from what is selected, and round again. What stands there, behind
 * one character; "": nowhere. */
static const char find_function[] =
    "(v=>{if(!window.find(v,false,false,true))return '';const s=getSelection();if(!s.rangeCount)return ' ';"
    "const r=s.getRangeAt(0),c=r.startContainer,e=c.parentElement||c,b=r.getBoundingClientRect();"
    "if(b.top<0||b.bottom>innerHeight)scrollBy({top:b.top-innerHeight/3,behavior:'instant'});"
    "const t=e.textContent,i=c===r.endContainer&&c.data!==t?t.indexOf(c.data)+r.startOffset:r.startOffset;"
    "return ' '+t.slice(Math.max(0,i-100),i+v.length+200)})";

static void find(struct action *a)
{
    struct buf params BUF_AUTO = BUF_INIT;
    put_call(&params, find_function, &a->params.text);
    step_ask(a, page_session(a), "Runtime.evaluate", &params, ASK_MS);
}

static void found(struct action *a)
{
    struct buf said BUF_AUTO = BUF_INIT;
    struct buf shown BUF_AUTO = BUF_INIT;
    element_said(a, &said);
    if (said.len == 0) {
        page_text_quoted(&shown, a->params.text.s, a->params.text.n, PAGE_VALUE_MAX / 4);
        step_fail(a, "%s is not on this page", buf_str(&shown));
        return;
    }
    page_text_quoted(&shown, said.data + 1, said.len - 1, PAGE_VALUE_MAX);
    tabs_note(&a->web->tabs, "found, and scrolled to; the same again goes to the next place: %s",
              buf_str(&shown));
    step_next(a);
}

const step_fn find_steps[] = {find, found, NULL};
