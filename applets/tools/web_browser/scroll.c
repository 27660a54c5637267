/* Scrolling, as a wheel does it: an element that is named; or what has the focus, what was last clicked, and
 * what lies over the page, and then that alone; or the page itself; or, where that has nothing more to show,
 * the largest part of it that has. What can't go on leaves it to what it is in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "mem.h"
#include "page_text.h"

#define ASK_MS 10000

/* Called on an element, or on a document for all else. Its argument: the direction, and "here" behind it
 * where only what the element is in is meant. "MOVED LEFT WHAT", in pixels; "wheel X Y HEIGHT WHAT" for a
 * frame that no script gets into; "": nothing could be moved. */
static const char scroll_function[] =
    "function(v){const d=/up/.test(v)?-1:1,D=this.ownerDocument||this,W=D.defaultView,"
    "top=e=>e===e.ownerDocument.scrollingElement,frame=e=>/^i?frame$/.test(e.localName),"
    "up=e=>e.assignedSlot||e.parentElement||e.parentNode&&e.parentNode.host,"
    "name=e=>top(e)?e.ownerDocument.defaultView===window.top?'page':'frame':"
    "e.localName+(e.id?'#'+e.id:'')+' '+(e.ariaLabel||''),"
    "open=e=>!top(e)&&e.scrollHeight>e.clientHeight+1&&/auto|scroll/.test(W.getComputedStyle(e).overflowY),"
    "move=e=>{const h=top(e)?e.ownerDocument.defaultView.innerHeight:e.clientHeight,b=e.scrollTop,"
    "r=e.scrollHeight-h;e.scrollTo({top:b+h*d,behavior:'instant'});const "
    "t=e.scrollTop,m=Math.round(Math.abs(t-b)),"
    "a=t+(/reverse/.test(W.getComputedStyle(e).flexDirection)&&!top(e)?r:0);"
    "return m?m+' '+Math.max(0,Math.round(d>0?r-a:a))+' '+name(e):''},"
    "into=f=>{const c=f.contentDocument;if(c)return c.activeElement&&chain(c.activeElement)||"
    "c.scrollingElement&&move(c.scrollingElement);const b=f.getBoundingClientRect();"
    "return W===window.top?['wheel',b.x+b.width/2|0,b.y+b.height/2|0,b.height*d|0,name(f)].join(' '):''},"
    "chain=e=>{let m='';for(;e&&!m;e=up(e))m=frame(e)?into(e):open(e)?move(e):'';return m},"
    "best=R=>{let x=null,s=0;const look=n=>{for(const e of n.querySelectorAll('*')){"
    "if(e.shadowRoot)look(e.shadowRoot);if(!frame(e)&&!open(e))continue;const b=e.getBoundingClientRect(),"
    "a=Math.max(0,Math.min(b.right,W.innerWidth)-Math.max(b.left,0))*"
    "Math.max(0,Math.min(b.bottom,W.innerHeight)-Math.max(b.top,0));if(a>s){s=a;x=e}}};look(R);"
    "return x&&(frame(x)?into(x):move(x))||''},R=D.scrollingElement||D.body;"
    "if(this!==D){const e=this.nodeType===1?this:this.parentElement,h=/here/.test(v);"
    "return chain(e)||(h?'':best(e))||(h&&W===window.top?'':R&&move(R))||''}"
    "let a=D.activeElement;while(a&&a.shadowRoot&&a.shadowRoot.activeElement)a=a.shadowRoot.activeElement;"
    "const x=W.innerWidth/2,y=W.innerHeight/2,m=a&&chain(a);if(m)return m;"
    "let k=0,o=D.elementFromPoint(x,y);"
    "while(o&&o.shadowRoot&&(a=o.shadowRoot.elementFromPoint(x,y))&&a!==o)o=a;"
    "for(let e=o;e;e=up(e)){if(open(e))k|=1;if(e.matches('dialog,[aria-modal=true]')||"
    "W.getComputedStyle(e).position==='fixed')k|=2}"
    "if(k===3)return chain(o);if(!R)return '';"
    "return "
    "move(R)||(top(R)&&R.scrollHeight>W.innerHeight+1&&!/hidden|clip/.test(W.getComputedStyle(R).overflowY)"
    "?'':best(D))}";

/* ---- the answer ---- */

static void turn_wheel(struct action *a, const char *rest)
{
    struct buf params BUF_AUTO = BUF_INIT;
    char *at;
    long x = strtol(rest, &at, 10), y = strtol(at, &at, 10), by = strtol(at, &at, 10);
    buf_addf(&params, "{\"type\":\"mouseWheel\",\"x\":%ld,\"y\":%ld,\"deltaX\":0,\"deltaY\":%ld}", x, y, by);
    tabs_note(&a->web->tabs,
              "the wheel was turned over a frame of another site by %ld px; how much is left is not known",
              labs(by));
    step_ask_lax(a, page_session(a), "Input.dispatchMouseEvent", &params, ASK_MS);
}

static void scrolled(struct action *a)
{
    struct buf said BUF_AUTO = BUF_INIT;
    struct buf what BUF_AUTO = BUF_INIT;
    const char *way = a->params.direction.s;
    char *at;
    element_said(a, &said);
    if (strncmp(buf_str(&said), "wheel ", 6) == 0) {
        turn_wheel(a, said.data + 6);
        return;
    }
    long moved = strtol(buf_str(&said), &at, 10), left = strtol(at, &at, 10);
    size_t n = strlen(at);
    while (n > 0 && at[n - 1] == ' ')
        n--;
    if (moved == 0) {
        tabs_note(&a->web->tabs, "nothing was scrolled: there is no more to the %s",
                  strcmp(way, "up") == 0 ? "top" : "bottom");
    } else {
        page_text_word(&what, at + 1, n > 0 ? n - 1 : 0, PAGE_VALUE_MAX);
        tabs_note(&a->web->tabs, "scrolled %s %s by %ld px; %ld px are left", buf_str(&what), way, moved,
                  left);
    }
    step_next(a);
}

/* ---- who is asked ---- */

static void ask_page(struct action *a)
{
    struct buf params BUF_AUTO = BUF_INIT;
    char *expression MEM_AUTO =
        mem_printf("(%s).call(document,'%s')", scroll_function, a->params.direction.s);
    buf_addc(&params, '{');
    json_member_string(&params, "expression", expression);
    buf_addc(&params, '}');
    step_ask(a, page_session(a), "Runtime.evaluate", &params, ASK_MS);
}

static void ask_element(struct action *a)
{
    element_call(a, scroll_function, &a->params.direction);
}

static void ask_pointed(struct action *a)
{
    char way[16];
    int n = snprintf(way, sizeof way, "%s here", a->params.direction.s);
    element_call(a, scroll_function, &(struct text){way, (size_t)n});
}

static const step_fn page_steps[] = {ask_page, scrolled, NULL};
static const step_fn element_steps[] = {element_find, element_object, ask_element, scrolled, NULL};

static void find_pointed(struct action *a)
{
    a->element.session = mem_strdup(a->web->pointer.session);
    a->element.backend = a->web->pointer.backend;
    element_resolve(a);
}

static void pointed_found(struct action *a)
{
    if (a->asked.result.s)
        element_object(a);
    else
        step_branch(a, page_steps);
}

/* What was clicked last may have gone, or may not scroll. */
static void pointed_scrolled(struct action *a)
{
    struct buf said BUF_AUTO = BUF_INIT;
    element_said(a, &said);
    if (said.len > 0)
        scrolled(a);
    else
        step_branch(a, page_steps);
}

static const step_fn pointed_steps[] = {find_pointed, pointed_found, ask_pointed, pointed_scrolled, NULL};

static void choose(struct action *a)
{
    const struct tab *t = a->web->tabs.first;
    const struct pointer *p = &a->web->pointer;
    if (a->params.element_id >= 0)
        step_branch(a, element_steps);
    else if (t && p->session && p->tab == t->number && p->loads == t->loads)
        step_branch(a, pointed_steps);
    else
        step_branch(a, page_steps);
}

const step_fn scroll_steps[] = {choose, NULL};
