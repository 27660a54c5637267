#include "element.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "keys.h"
#include "mem.h"
#include "mouse.h"
#include "page_text.h"

#define ASK_MS 10000

/* ---- finding ---- */

static void ask_about(struct action *a, const char *method)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    if (a->element.object)
        json_member_string(&params, "objectId", a->element.object);
    else
        json_member_int(&params, "backendNodeId", a->element.backend);
    buf_addc(&params, '}');
    step_ask_lax(a, a->element.session, method, &params, ASK_MS);
}

void element_resolve(struct action *a)
{
    free(a->element.object);
    a->element.object = NULL;
    ask_about(a, "DOM.resolveNode");
}

void element_find(struct action *a)
{
    const struct tab *t = a->web->tabs.first;
    long long id = a->params.element_id;
    long long frame = t && t->frames ? id / PAGE_FRAME_IDS : 0; /* one without frames has all numbers */
    const char *session = t && id > 0 && frame < INT_MAX ? tab_session(t, (int)frame) : NULL;
    if (!t) {
        step_fail(a, "no page is open; web_go opens one");
        return;
    }
    if (!session) {
        step_fail(a, "there is no element %lld on this page; ids are the numbers in brackets of web_at", id);
        return;
    }
    free(a->element.session);
    a->element.session = mem_strdup(session);
    a->element.backend = id - frame * PAGE_FRAME_IDS;
    element_resolve(a);
}

void element_object(struct action *a)
{
    struct span object;
    struct buf id BUF_AUTO = BUF_INIT;
    if (!a->asked.result.s || !json_member(a->asked.result, "object", &object, NULL) ||
        !member_text(object, "objectId", &id)) {
        step_fail(a, "there is no element %lld on this page (any more); take the ids from the newest web_at",
                  a->params.element_id);
        return;
    }
    free(a->element.object);
    a->element.object = buf_take(&id, NULL);
    step_next(a);
}

/* ---- JavaScript ---- */

/* A label of it that can be clicked: none that has something else in it to be clicked. */
static const char label_function[] =
    "function(){return(this.labels?[...this.labels]:[this]).find(l=>l.getBoundingClientRect().width>0&&"
    "!l.querySelector('a,button'))}";

void element_call(struct action *a, const char *function, const struct text *argument)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    json_member_string(&params, "objectId", a->element.object);
    json_member_string(&params, "functionDeclaration", function);
    json_member_bool(&params, "returnByValue", function != label_function);
    json_member_bool(&params, "userGesture", true);
    if (argument) {
        json_key(&params, "arguments");
        buf_adds(&params, "[{\"value\":");
        json_put_string(&params, argument->s ? argument->s : "", argument->n);
        buf_adds(&params, "}]");
    }
    buf_addc(&params, '}');
    step_ask_lax(a, a->element.session, "Runtime.callFunctionOn", &params, ASK_MS);
}

void element_said(struct action *a, struct buf *text)
{
    struct span result;
    if (a->asked.result.s && json_member(a->asked.result, "result", &result, NULL))
        member_text(result, "value", text);
}

/* What it is: "gone", "file", "option", "select", "value" (an input that is set rather than typed into),
 * "text" (takes text), "button" (what a click sets off or checks), "other"; behind it " disabled", "
 * readonly" and " label": what is seen of it, and takes the click, is its label. */
static const char look_function[] =
    "function(){let e=this.nodeType===1?this:this.parentElement;"
    "if(!e||!e.isConnected)return 'gone';"
    "const n=e.localName,t=(e.type||'').toLowerCase();let k='other';"
    "if(n==='input')k=t==='file'?'file':/^(date|time|datetime-local|month|week|color|range)$/"
    ".test(t)?'value':"
    "/^(button|submit|reset|image|checkbox|radio|hidden)$/.test(t)?'button':'text';"
    "else if(n==='textarea'||e.isContentEditable)k='text';"
    "else if(n==='select')k='select';else if(n==='option')k='option';"
    "else if(n==='button'||(n==='a'&&e.href))k='button';"
    "let l=n==='area'?' label':'';const "
    "c=n==='label'?e.control:e;if(c&&/^(checkbox|radio)$/.test(c.type)){k='button';"
    "const b=c.getBoundingClientRect(),s=getComputedStyle(c);if(c!==e?e.querySelector('a,button'):"
    "c.labels.length&&(b.width*b.height<5||b.right+scrollX<=0||b.bottom+scrollY<=0||s.opacity==='0'||"
    "s.pointerEvents==='none'))l=' label'}"
    "let d=false;try{d=e.matches(':disabled')}catch(x){}"
    "return k+l+(d?' disabled':'')+(e.readOnly&&k==='text'?' readonly':'')}";

static void look(struct action *a)
{
    element_call(a, look_function, NULL);
}

/* Chooses the option that its argument names; without one, the option that it is called on. "": done; or what
 * is wrong. */
static const char choose_function[] =
    "function(v){const f=(e)=>{e.dispatchEvent(new Event('input',{bubbles:true,composed:true}));"
    "e.dispatchEvent(new Event('change',{bubbles:true}))};"
    "let s=this.localName==='select'?this:this.closest('select'),o=null;"
    "if(!s)return 'it belongs to no select';"
    "if(s.matches(':disabled'))return 'it is disabled';"
    "const l=x=>(x.label||x.text).trim(),all=[...s.options],w=(v||'').trim(),i=w.toLowerCase();"
    "if(v===undefined)o=this;else o=all.find(x=>x.value===v)||all.find(x=>l(x)===w)||"
    "all.find(x=>l(x).toLowerCase()===i)||(m=>m.length===1?m[0]:null)(all.filter(x=>i&&l(x).toLowerCase()"
    ".includes(i)));"
    "if(!o)return 'it has no option '+JSON.stringify(v)+'; its options are '+"
    "all.slice(0,40).map(x=>JSON.stringify(l(x))).join(', ')+(all.length>40?', …':'');"
    "if(o.matches(':disabled'))return 'the option is disabled';"
    "s.focus();"
    "if(s.multiple)o.selected=v===undefined?!o.selected:true;else s.selectedIndex=o.index;"
    "f(s);return ''}";

/* An input that has a form of its own: dates, colours. */
static const char value_function[] =
    "function(v){const p=Object.getOwnPropertyDescriptor(HTMLInputElement.prototype,'value');"
    "this.focus();const b=this.value;p.set.call(this,v.trim());"
    "if(this.value===''||(this.value===b&&b!==v.trim()&&this.type!=='range')){p.set.call(this,b);"
    "return 'an input of type '+this.type+' takes '+({date:'YYYY-MM-DD',time:'HH:MM',month:'YYYY-MM',"
    "week:'YYYY-Www','datetime-local':'YYYY-MM-DDTHH:MM',color:'#rrggbb'}[this.type]||'a number')}"
    "this.dispatchEvent(new Event('input',{bubbles:true,composed:true}));"
    "this.dispatchEvent(new Event('change',{bubbles:true}));return ''}";

static bool begins(const struct buf *text, const char *word)
{
    return strncmp(buf_str(text), word, strlen(word)) == 0;
}

/* Refuses what no action can do anything with. */
static bool is_usable(struct action *a, const struct buf *what)
{
    long long id = a->params.element_id;
    if (what->len == 0 || begins(what, "gone"))
        step_fail(a, "element %lld is not on this page any more; take the ids from the newest web_at", id);
    else if (begins(what, "file"))
        step_fail(a, "element %lld wants a file to be chosen: web_upload gives it one", id);
    else if (strstr(what->data, " disabled"))
        step_fail(a, "element %lld is disabled", id);
    else
        return true;
    return false;
}

/* ---- clicking ---- */

static void chosen(struct action *a)
{
    struct buf wrong BUF_AUTO = BUF_INIT;
    element_said(a, &wrong);
    if (!a->asked.result.s)
        step_fail(a, "element %lld: %s", a->params.element_id, a->asked.why.msg);
    else if (wrong.len > 0)
        step_fail(a, "element %lld: %s", a->params.element_id, buf_str(&wrong));
    else
        step_done(a);
}

void element_show(struct action *a)
{
    ask_about(a, "DOM.scrollIntoViewIfNeeded");
}

void element_place(struct action *a)
{
    ask_about(a, "DOM.getContentQuads");
}

/* What lies where the click goes and has nothing to do with the element, in a few words; "": nothing. A label
 * belongs to its input, and all that a link holds to the link. */
static const char above_function[] =
    "function(){const e=this.nodeType===1?this:this.parentElement;let q=this;"
    "if(q!==e){q=document.createRange();q.selectNode(this)}"
    "const b=[...q.getClientRects()].find(r=>r.width*r.height>.5),r=e.getRootNode();"
    "const h=b&&r.elementFromPoint&&r.elementFromPoint(b.x+b.width/2,b.y+b.height/2);"
    "if(!h||e.contains(h)||h.contains(e))return '';"
    "const l=h.closest('label'),c=h.closest('a,button,label');"
    "if(l&&l.control===e||c&&c.contains(e))return '';"
    "return h.localName+(h.id?'#'+h.id:'')+' '+(h.innerText||'').trim().slice(0,60)}";

static void look_above(struct action *a)
{
    element_call(a, above_function, NULL);
}

static void aim_and_note(struct action *a)
{
    struct buf above BUF_AUTO = BUF_INIT;
    struct buf shown BUF_AUTO = BUF_INIT;
    element_said(a, &above);
    page_text_quoted(&shown, buf_str(&above), above.len, PAGE_VALUE_MAX);
    if (above.len > 0)
        tabs_note(&a->web->tabs, "element %lld lies under another one, which the click went to: %s",
                  a->params.element_id, buf_str(&shown));
    element_place(a);
}

static const step_fn script_click_steps[3];

static void press_mouse(struct action *a)
{
    if (!mouse_aim(a))
        return;
    if (!mouse_reaches(a))
        step_branch(a, script_click_steps);
    else
        mouse_act(a);
}

void element_click(struct action *a)
{
    element_call(a, "function(){(this.click?this:this.parentElement).click();return ''}", NULL);
}

static void choose_option(struct action *a)
{
    element_call(a, choose_function, &a->params.value);
}

static void toggle_option(struct action *a)
{
    element_call(a, choose_function, NULL);
}

static void look_for_label(struct action *a)
{
    element_call(a, label_function, NULL);
}

static void have_label(struct action *a)
{
    struct span result;
    struct buf id BUF_AUTO = BUF_INIT;
    if (!a->asked.result.s || !json_member(a->asked.result, "result", &result, NULL) ||
        !member_text(result, "objectId", &id)) {
        step_branch(a, script_click_steps);
        return;
    }
    free(a->element.object);
    a->element.object = buf_take(&id, NULL);
    step_next(a);
}

static void set_value(struct action *a)
{
    element_call(a, value_function, &a->params.text);
}

/* The browser would draw its list outside of the page, and the next click would only close that. */
static void focus_select(struct action *a)
{
    tabs_note(&a->web->tabs,
              "this is a select: choose an option by typing it with web_type, or with web_select");
    element_call(a, "function(){this.focus();return ''}", NULL);
}

static const step_fn script_click_steps[3] = {element_click, chosen, NULL};
static const step_fn choose_steps[] = {choose_option, chosen, NULL};
static const step_fn toggle_steps[] = {toggle_option, chosen, NULL};
static const step_fn set_value_steps[] = {set_value, chosen, NULL};
static const step_fn focus_steps[] = {focus_select, chosen, NULL};

static const step_fn label_steps[] = {look_for_label, have_label,  element_show, look_above,
                                      aim_and_note,   press_mouse, NULL};

static void click_looked(struct action *a)
{
    struct buf what BUF_AUTO = BUF_INIT;
    element_said(a, &what);
    bool plain = mouse_clicks(a);
    if (plain && !is_usable(a, &what))
        return;
    if (plain && begins(&what, "option"))
        step_branch(a, toggle_steps);
    else if (plain && begins(&what, "select"))
        step_branch(a, focus_steps);
    else if (what.len > 0 && strstr(what.data, " label"))
        step_branch(a, label_steps);
    else
        step_next(a);
}

const step_fn click_steps[] = {mouse_check,  element_find, element_object, look,        click_looked,
                               element_show, look_above,   aim_and_note,   press_mouse, NULL};

/* ---- choosing ---- */

static void select_looked(struct action *a)
{
    struct buf what BUF_AUTO = BUF_INIT;
    element_said(a, &what);
    if (!is_usable(a, &what))
        return;
    if (begins(&what, "select") || begins(&what, "option"))
        step_branch(a, choose_steps);
    else
        step_fail(a, "element %lld is no select; click it, and then the option that it shows",
                  a->params.element_id);
}

const step_fn select_steps[] = {element_find, element_object, look, select_looked, NULL};

/* ---- typing ---- */

static void type_looked(struct action *a)
{
    struct buf what BUF_AUTO = BUF_INIT;
    element_said(a, &what);
    if (!is_usable(a, &what))
        return;
    if (begins(&what, "select") || begins(&what, "option")) {
        free(a->params.value.s);
        a->params.value = a->params.text;
        a->params.text = (struct text){0};
        step_branch(a, choose_steps);
    } else if (begins(&what, "value")) {
        step_branch(a, set_value_steps);
    } else if (begins(&what, "button")) { /* a click, to see whether it does, would set it off */
        step_fail(a, "element %lld takes no text; web_click is for it", a->params.element_id);
    } else if (strstr(what.data, " readonly")) {
        step_fail(a, "element %lld is read-only", a->params.element_id);
    } else {
        step_next(a);
    }
}

/* Makes sure that what was clicked takes the keys (a label may lie over it), with the caret behind its text,
 * or with the text selected that is to go. "text", "line" (text without line feeds), "rich", "other" or
 * "none": what has the focus. */
static const char focus_function[] =
    "function(clear){let e=this.nodeType===1?this:this.parentElement;"
    "const deep=()=>{let x=e.ownerDocument.activeElement;"
    "while(x&&x.shadowRoot&&x.shadowRoot.activeElement)x=x.shadowRoot.activeElement;return x};"
    "const takes=x=>x&&(x.localName==='textarea'||x.isContentEditable||(x.localName==='input'&&"
    "!/^(button|submit|reset|image|checkbox|radio|file|range|color)$/.test(x.type)));"
    "let x=deep();if(takes(e)&&x!==e&&!(x&&e.contains(x))){e.focus();x=deep()}"
    "if(!takes(x))return !x||x===e.ownerDocument.body||x===e.ownerDocument.documentElement?'none':'other';"
    "const t=x.isContentEditable?'rich':x.localName==='input'?'line':'text';"
    "if(x.isContentEditable){const s=x.ownerDocument.getSelection();s.selectAllChildren(x);"
    "if(!clear)s.collapseToEnd();else if(!x.textContent)return t;}"
    "else if(clear){x.select();if(!x.value&&x.type!=='number')return t}"
    "else try{x.setSelectionRange(x.value.length,x.value.length)}catch(y){}"
    "return clear?t+' selected':t}";

static void focus_end(struct action *a)
{
    if (a->web->tabs.first && a->web->tabs.first->navigation != NAVIGATION_NONE)
        step_done(a); /* the click leads away */
    else
        element_call(a, focus_function, NULL);
}

static void focus_all(struct action *a)
{
    static const struct text yes = {(char *)(uintptr_t) "1", 1};
    if (a->web->tabs.first && a->web->tabs.first->navigation != NAVIGATION_NONE)
        step_done(a);
    else
        element_call(a, focus_function, &yes);
}

/* A line feed would send the form: as in what is pasted there, it is a space, and none at the end. */
static void make_one_line(struct text *text)
{
    while (text->n > 0 && strchr("\r\n", text->s[text->n - 1]))
        text->n--;
    for (size_t i = 0; i < text->n; i++)
        if (text->s[i] == '\n' || text->s[i] == '\r')
            text->s[i] = ' ';
}

static void type_text(struct action *a)
{
    struct buf what BUF_AUTO = BUF_INIT;
    element_said(a, &what);
    if (what.len == 0 || begins(&what, "none")) {
        step_fail(a, "element %lld takes no text", a->params.element_id);
        return;
    }
    if (strstr(what.data, "selected"))
        keys_press(a, "Backspace");
    if (begins(&what, "line"))
        make_one_line(&a->params.text);
    keys_type(a, a->params.text, begins(&what, "rich"));
    keys_flush(a);
}

static void press_enter(struct action *a)
{
    keys_press(a, "Enter");
    keys_flush(a);
}

const step_fn type_steps[] = {element_find,  element_object, look,      type_looked, element_show,
                              element_place, press_mouse,    focus_end, type_text,   NULL};
const step_fn submit_steps[] = {element_find, element_object, look,        type_looked,
                                element_show, element_place,  press_mouse, focus_all,
                                type_text,    press_enter,    NULL};
