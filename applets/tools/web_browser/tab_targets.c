/* Pages and their frames, which the browser calls targets: they come, are set up, and go. */
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "tab_internal.h"
#include "tab_scripts.h"

static void frame_free(struct frame *f)
{
    free(f->target);
    free(f->session);
    free(f->parent);
    free(f);
}

static void tab_free(struct tab *t)
{
    for (struct frame *f; (f = t->frames);) {
        t->frames = f->next;
        frame_free(f);
    }
    ids_clear(&t->loading);
    ids_clear(&t->requests);
    free(t->target);
    free(t->session);
    awaited_release(&t->awaited);
    free(t->url);
    free(t);
}

void tab_call(struct tabs *tabs, const char *session, const char *method, const char *params)
{
    cdp_call(tabs->cdp, session, method, (struct span){params, params ? strlen(params) : 0}, NULL, NULL);
}

/* A page on its way. */
struct setting_up {
    struct tabs *tabs;
    char *session;
};

static void page_is_ready(void *arg, struct span result, const struct err *err)
{
    struct setting_up *s = arg;
    struct tabs *tabs = s->tabs;
    struct tab *t = tab_of(tabs, s->session);
    (void)result;
    free(s->session);
    free(s);
    if (t && !err)
        t->is.ready = true;
    tabs->owner.changed(tabs->owner.arg);
}

/* What every session of a page or frame begins with; then the target, which waits, runs. */
static void set_up(struct tabs *tabs, const char *session, bool page)
{
    tab_call(tabs, session, "Page.enable", NULL);
    tab_call(tabs, session, "Page.setLifecycleEventsEnabled", "{\"enabled\":true}");
    tab_call(tabs, session, "Inspector.enable", NULL);
    tab_call(tabs, session, "Network.enable",
             "{\"maxTotalBufferSize\":10000000,\"maxResourceBufferSize\":5000000}");
    tab_call(tabs, session, "Target.setAutoAttach",
             "{\"autoAttach\":true,\"waitForDebuggerOnStart\":true,\"flatten\":true,"
             "\"filter\":[{\"type\":\"iframe\"}]}");
    tab_scripts_add(tabs->cdp, session, tabs->token);
    if (page) {
        tab_call(tabs, session, "Emulation.setDeviceMetricsOverride",
                 "{\"width\":1280,\"height\":1080,\"deviceScaleFactor\":1,\"mobile\":false}");
        tab_call(tabs, session, "Emulation.setFocusEmulationEnabled", "{\"enabled\":true}");
        tab_call(tabs, session, "Page.setInterceptFileChooserDialog", "{\"enabled\":true}");
        overrides_begin_page(tabs, session);
    }
    struct setting_up *s = page ? mem_alloc(sizeof *s) : NULL;
    if (s)
        *s = (struct setting_up){tabs, mem_strdup(session)};
    cdp_call(tabs->cdp, session, "Runtime.runIfWaitingForDebugger", (struct span){0},
             s ? page_is_ready : NULL, s);
}

static void close_target(struct tabs *tabs, const char *target)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    json_member_string(&params, "targetId", target);
    buf_addc(&params, '}');
    cdp_call(tabs->cdp, "", "Target.closeTarget", span_of(&params), NULL, NULL);
}

static void page_came(struct tabs *tabs, char *session, char *target, char *url)
{
    if (tabs->n >= TABS_MAX) {
        tabs_note(tabs, "the page opens more than %d tabs: the newest was closed", TABS_MAX);
        tab_call(tabs, session, "Runtime.runIfWaitingForDebugger", NULL); /* whoever opened it waits, too */
        close_target(tabs, target);
        free(session);
        free(target);
        free(url);
        return;
    }
    struct tab *t = mem_zalloc(sizeof *t);
    *t = (struct tab){.next = tabs->first, .target = target, .session = session, .url = url};
    t->number = tabs->next_number++;
    t->is.parsed = t->is.loaded = true; /* the empty document that it begins with */
    t->navigation = tabs->opening ? NAVIGATION_REQUESTED : NAVIGATION_NONE;
    tabs->opening = false;
    tabs->first = t;
    tabs->n++;
    set_up(tabs, session, true);
}

static void frame_came(struct tabs *tabs, const char *parent, char *session, char *target)
{
    struct tab *t = tab_of(tabs, parent);
    if (!t) {
        free(session);
        free(target);
        return;
    }
    struct frame *f = mem_zalloc(sizeof *f), **end = &t->frames;
    *f = (struct frame){.target = target, .session = session, .parent = mem_strdup(parent)};
    f->number = ++t->last_number;
    while (*end) /* behind its parent, which was there before */
        end = &(*end)->next;
    *end = f;
    set_up(tabs, session, false);
}

void tabs_attached(struct tabs *tabs, const char *parent, struct span params)
{
    struct span info;
    char *session = member_dup(params, "sessionId");
    if (!session || !json_member(params, "targetInfo", &info, NULL) || json_kind(info) != JSON_OBJECT) {
        free(session);
        return;
    }
    char *target = member_dup(info, "targetId");
    if (target && !*parent && member_is(info, "type", "page")) {
        char *url = member_dup(info, "url");
        page_came(tabs, session, target, url ? url : mem_strdup(""));
    } else if (target && member_is(info, "type", "iframe")) {
        frame_came(tabs, parent, session, target);
    } else {
        free(session);
        free(target);
    }
}

void tabs_detached(struct tabs *tabs, struct span params)
{
    char *session MEM_AUTO = member_dup(params, "sessionId");
    struct tab *t = session ? tab_of(tabs, session) : NULL;
    struct err gone;
    if (!t)
        return;
    if (strcmp(t->session, session) == 0) {
        dialog_closes(tabs, session);
        tabs_unlink(tabs, t);
        tabs->n--;
        tab_free(t);
    } else {
        for (struct frame **at = &t->frames; *at; at = &(*at)->next)
            if (strcmp((*at)->session, session) == 0) {
                struct frame *f = *at;
                *at = f->next;
                ids_set(&t->loading, mem_strdup(f->target), false);
                frame_free(f);
                break;
            }
    }
    err_set(&gone, ERR_TOOL, "it has been closed");
    cdp_fail(tabs->cdp, session, &gone);
}

void tab_crashed(struct tabs *tabs, struct tab *t, const char *session)
{
    struct err err;
    if (strcmp(t->session, session) != 0)
        return; /* a frame's: the page lives */
    t->is.crashed = true;
    dialog_closes(tabs, session);
    t->navigation = NAVIGATION_NONE;
    ids_clear(&t->loading);
    ids_clear(&t->requests);
    err_set(&err, ERR_TOOL,
            "the page has crashed; load it again with web_refresh, or another one with web_go");
    cdp_fail(tabs->cdp, session, &err);
}
