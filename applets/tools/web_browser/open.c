#include "open.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "mem.h"
#include "proc.h"
#include "random.h"

#define OPEN_MS 60000 /* a browser on a slow, busy machine */
#define REAP_MS 1000
#define GRACE_MS 500
#define LIMIT_MS 3000

static void event(void *arg, const char *session, const char *method, struct span params)
{
    tabs_event(&((struct web *)arg)->tabs, session, method, params);
}

/* Its process will be reaped in a moment, and then says how it ended; one that only closes its pipe is ended.
 */
static void end_it(void *arg)
{
    struct web *web = arg;
    loop_drop(&web->patience);
    if (web->browser.pid > 0)
        kill(web->browser.pid, SIGKILL);
}

static void hung_up(void *arg)
{
    struct web *web = arg;
    if (!web->patience)
        web->patience = loop_timer(web->loop, REAP_MS, end_it, web);
}

static const struct cdp_events events = {.event = event, .hung_up = hung_up};

/* ---- waiting ---- */

static void stop(void *arg)
{
    loop_stop(((struct web *)arg)->loop, 0);
}

static void look(void *arg)
{
    struct web *web = arg;
    if (web->tabs.first && web->tabs.first->is.ready)
        loop_stop(web->loop, 0);
}

/* Where the browser has hung up, its end comes next. */
static void failed(struct web *web)
{
    if (!web->patience)
        stop(web);
}

static void answered(void *arg, struct span result, const struct err *err)
{
    (void)result;
    if (err)
        failed(arg);
}

static void call(struct web *web, const char *method, const char *params, cdp_answer_fn done)
{
    cdp_call(web->browser.cdp, "", method, (struct span){params, strlen(params)}, done, web);
}

static void have_context(void *arg, struct span result, const struct err *err)
{
    struct web *web = arg;
    struct buf id = BUF_INIT;
    if (err || !member_text(result, "browserContextId", &id)) {
        failed(web);
        return;
    }
    web->context = buf_take(&id, NULL);
    char *downloads MEM_AUTO = mem_printf(
        "{\"behavior\":\"deny\",\"eventsEnabled\":true,\"browserContextId\":\"%s\"}", web->context);
    char *page MEM_AUTO = mem_printf("{\"url\":\"about:blank\",\"browserContextId\":\"%s\"}", web->context);
    call(web, "Browser.setDownloadBehavior", downloads, NULL);
    call(web, "Target.createTarget", page, answered);
}

static void wait_for_page(struct web *web)
{
    struct loop_source *timer = loop_timer(web->loop, OPEN_MS, stop, web);
    call(web, "Target.setAutoAttach",
         "{\"autoAttach\":true,\"waitForDebuggerOnStart\":true,\"flatten\":true,\"filter\":[{\"type\":"
         "\"page\"}]}",
         NULL);
    call(web, "Target.createBrowserContext", "{\"disposeOnDetach\":true}", have_context);
    loop_run(web->loop);
    loop_remove(timer);
}

/* ---- a start that came to nothing ---- */

static void tree_has_ended(void *arg, size_t left)
{
    (void)left;
    stop(arg);
}

/* How it ended is known once it has been reaped, which comes a little behind its last words. */
static void clean_up(struct web *web, struct err *err)
{
    struct err closed;
    browser_say_end(&web->browser, err);
    loop_drop(&web->patience);
    err_set(&closed, ERR_TOOL, "the browser did not start");
    browser_hang_up(&web->browser, &closed);
    struct tree_end_options all = {.group = web->browser.pid, .grace_ms = GRACE_MS, .limit_ms = LIMIT_MS};
    tree_end(web->loop, &all, tree_has_ended, web);
    loop_run(web->loop);
    profile_remove(&web->browser.profile);
    free(web->context);
    web->context = NULL;
}

static void make_token(char token[33])
{
    unsigned char bytes[16] = {0};
    random_bytes(bytes, sizeof bytes); /* without any, pages could make an action wait a second longer */
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
}

static int open_once(struct web *web, const struct keeper *k, const struct browser_wish *wish,
                     struct err *err)
{
    if (browser_start(&web->browser, k, wish, &events, web, stop, err) < 0)
        return -1;
    web->tabs = (struct tabs){.cdp = web->browser.cdp,
                              .owner = {look, web},
                              .window.width = WEB_WIDTH,
                              .window.height = WEB_HEIGHT};
    buf_init(&web->tabs.notes.text, BUF_NO_MAX);
    buf_init(&web->tabs.dialogs.shown, BUF_NO_MAX);
    buf_init(&web->tabs.overrides.list, BUF_NO_MAX);
    web->tabs.downloads.dirfd = -1;
    make_token(web->tabs.token);
    wait_for_page(web);
    if (web->tabs.first && web->tabs.first->is.ready)
        return 0;
    clean_up(web, err);
    return -1;
}

int web_open(struct web *web, const struct keeper *k, struct browser_wish *wish, void (*ended)(void *arg),
             struct err *err)
{
    web->loop = k->base.loop;
    web->last = &web->first;
    wish->sandbox = (wish->user ? wish->user->uid : geteuid()) != 0;
    if (!wish->sandbox)
        log_line(LOG_WARNING, "%s: the browser runs without its sandbox, because as root it can't have one",
                 k->name);
    int result = open_once(web, k, wish, err);
    if (result < 0 && wish->sandbox && browser_lacks_sandbox(&web->browser)) {
        log_line(LOG_WARNING, "%s: the browser runs without its sandbox, which can't be had here", k->name);
        wish->sandbox = false;
        result = open_once(web, k, wish, err);
    }
    web->browser.ended = ended;
    web->tabs.owner.changed = web_changed;
    return result;
}

void web_take_downloads(struct web *web, const struct downloads *downloads)
{
    struct buf params BUF_AUTO = BUF_INIT;
    web->tabs.downloads = *downloads;
    if (downloads->dirfd < 0)
        return;
    buf_addc(&params, '{');
    json_member_string(&params, "behavior", "allowAndName");
    json_member_string(&params, "downloadPath", downloads->dir);
    json_member_string(&params, "browserContextId", web->context);
    json_member_bool(&params, "eventsEnabled", true);
    buf_addc(&params, '}');
    call(web, "Browser.setDownloadBehavior", params.data, NULL);
}

void web_accept_certificates(struct web *web)
{
    struct buf list BUF_AUTO = BUF_INIT;
    overrides_put(&list, "Security.setIgnoreCertificateErrors", "{\"ignore\":true}");
    overrides_keep(&web->tabs, span_of(&list));
    overrides_call(&web->tabs, web->tabs.first->session, span_of(&list));
}
