#include "tab_scripts.h"

#include "buf.h"
#include "json.h"
#include "mem.h"

/* What a click or a key makes a page do a little later, by a timer, is a thing to wait for like a request;
 * but no event tells of timers. So they are watched in the page: those of at most a second that are set while
 * such an input is handled, or whose code speaks of the page's address, as it does to lead on to another. A
 * download that a link asks for is waited for like one. Asked with the token, setTimeout says how long the
 * last of them still takes. Nothing that the page may have replaced is relied on. */
static const char timer_script[] =
    "(()=>{const "
    "S=window.setTimeout,C=window.clearTimeout,A=Reflect.apply,I=Array.prototype.some,P=Event.prototype."
    "composedPath,X=RegExp.prototype.exec,F=Function.prototype."
    "toString,N=performance.now.bind(performance),"
    "due={__proto__:null},T={__proto__:null,click:1,auxclick:1,dblclick:1,mousedown:1,mouseup:1,pointerdown:"
    "1,"
    "pointerup:1,keydown:1,keypress:1,keyup:1,beforeinput:1,input:1,change:1,submit:1};"
    "window.setTimeout=new Proxy(S,{apply(f,t,a){"
    "if(a[2]==='%s'){let m=0;for(const i in due){const d=due[i]-N();if(d>m)m=d;else if(d<0)delete due[i]}"
    "return 'ms:'+m}"
    "const e=window.event,w=+a[1]||0,g=a[0],c=typeof g==='function';"
    "if(!(w<=1000&&(c&&e&&e.isTrusted&&T[e.type]||w>9&&A(X,/\\blocation\\b/,[c?A(F,g,[]):g]))))return "
    "A(f,t,a);"
    "if(!c){const i=A(f,t,a);due[i]=N()+w;return i}"
    "let i;a[0]=function(){delete due[i];return A(g,this,arguments)};i=A(f,t,a);due[i]=N()+w;return i}});"
    "window.addEventListener('click',e=>{if(A(I,A(P,e,[]),[x=>x.localName==='a'&&x.hasAttribute('download')])"
    ")"
    "due.download=N()+500},true);"
    "window.clearTimeout=new Proxy(C,{apply(f,t,a){delete due[a[0]];return A(f,t,a)}})})()";

/* For an address that is another program's (tel:, and any that it doesn't know) a browser asks a person, in a
 * window of its own that no protocol reaches: until then, the page takes no click and no key. */
static const char scheme_script[] = "(()=>{const X=RegExp.prototype.exec,A=Reflect.apply,n=window.navigation;"
                                    "if(n)n.addEventListener('navigate',e=>{if(e.cancelable&&!A(X,/"
                                    "^(https?|file|ftp|about|data|blob|filesystem|"
                                    "javascript|view-source|chrome|chrome-[a-z]+|devtools):/"
                                    "i,[e.destination.url]))e.preventDefault()},true)})()";

static void add(struct cdp *cdp, const char *session, const char *script)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    json_member_string(&params, "source", script);
    json_member_bool(&params, "runImmediately", true);
    buf_addc(&params, '}');
    cdp_call(cdp, session, "Page.addScriptToEvaluateOnNewDocument", span_of(&params), NULL, NULL);
}

void tab_scripts_add(struct cdp *cdp, const char *session, const char *token)
{
    char *timers MEM_AUTO = mem_printf(timer_script, token);
    add(cdp, session, timers);
    add(cdp, session, scheme_script);
}
