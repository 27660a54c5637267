#include "tab.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "log.h"
#include "mem.h"
#include "page_text.h"
#include "tab_scripts.h"

#define NOTE_MAX 500 /* bytes of one */
#define REFRESH_MAX_S 3
#define REFRESH_SLACK_MS 300
#define DOWNLOAD_MS 100 /* from the end of a navigation without a document, until it turns out to be one */

bool member_text(struct span object, const char *key, struct buf *out)
{
    struct span value;
    return json_kind(object) == JSON_OBJECT && json_member(object, key, &value, NULL) &&
           json_string_text(value, out);
}

/* NULL when it isn't there; free it. */
static char *member_dup(struct span object, const char *key)
{
    struct buf text = BUF_INIT;
    return member_text(object, key, &text) ? buf_take(&text, NULL) : NULL;
}

static bool member_is(struct span object, const char *key, const char *text)
{
    struct span value;
    return text && json_member(object, key, &value, NULL) && json_string_is(value, text);
}

/* ---- ids ---- */

static void ids_drop(struct ids *ids, size_t i)
{
    free(ids->list[i]);
    ids->list[i] = ids->list[--ids->n];
}

static void ids_clear(struct ids *ids)
{
    while (ids->n > 0)
        ids_drop(ids, ids->n - 1);
}

/* Takes the id (NULL: none). */
static void ids_set(struct ids *ids, char *id, bool there)
{
    for (size_t i = 0; id && i < ids->n; i++)
        if (strcmp(ids->list[i], id) == 0)
            ids_drop(ids, i--);
    if (id && there && ids->n < IDS_MAX)
        ids->list[ids->n++] = id;
    else
        free(id);
}

/* ---- notes ---- */

void tabs_watch(struct tabs *tabs)
{
    buf_release(&tabs->notes);
    tabs->n_notes = 0;
    free(tabs->failure);
    tabs->failure = NULL;
    for (struct tab *t = tabs->first; t; t = t->next) {
        t->unreachable = false;
        ids_clear(&t->requests);
    }
}

void tabs_note(struct tabs *tabs, const char *fmt, ...)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct buf note BUF_AUTO = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    json_put_string(&note, buf_str(&text), text.len);
    if (tabs->n_notes >= NOTES_MAX || strstr(buf_str(&tabs->notes), note.data))
        return; /* what happens again and again is said once */
    tabs->n_notes++;
    if (tabs->notes.len > 0)
        buf_addc(&tabs->notes, ',');
    buf_add(&tabs->notes, note.data, note.len);
}

static void fail(struct tabs *tabs, char *why)
{
    free(tabs->failure);
    tabs->failure = why;
}

/* ---- finding ---- */

/* The tab that a session belongs to, as its page's or as a frame's. */
static struct tab *tab_of(const struct tabs *tabs, const char *session)
{
    for (struct tab *t = tabs->first; t; t = t->next) {
        if (strcmp(t->session, session) == 0)
            return t;
        for (const struct frame *f = t->frames; f; f = f->next)
            if (strcmp(f->session, session) == 0)
                return t;
    }
    return NULL;
}

struct tab *tabs_find(const struct tabs *tabs, long long number)
{
    struct tab *t = tabs->first;
    while (t && t->number != number)
        t = t->next;
    return t;
}

static void unlink_tab(struct tabs *tabs, struct tab *tab)
{
    for (struct tab **at = &tabs->first; *at; at = &(*at)->next)
        if (*at == tab) {
            *at = tab->next;
            return;
        }
}

void tabs_make_current(struct tabs *tabs, struct tab *tab)
{
    unlink_tab(tabs, tab);
    tab->next = tabs->first;
    tabs->first = tab;
}

const char *tab_session(const struct tab *tab, int number)
{
    if (number == 0)
        return tab->session;
    for (const struct frame *f = tab->frames; f; f = f->next)
        if (f->number == number)
            return f->session;
    return NULL;
}

/* ---- targets come and go ---- */

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
    free(t->url);
    free(t);
}

static void call(struct tabs *tabs, const char *session, const char *method, const char *params)
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
        t->ready = true;
    tabs->changed(tabs->arg);
}

/* What every session of a page or frame begins with; then the target, which waits, runs. */
static void set_up(struct tabs *tabs, const char *session, bool page)
{
    call(tabs, session, "Page.enable", NULL);
    call(tabs, session, "Page.setLifecycleEventsEnabled", "{\"enabled\":true}");
    call(tabs, session, "Inspector.enable", NULL);
    call(tabs, session, "Network.enable", "{\"maxTotalBufferSize\":0,\"maxResourceBufferSize\":0}");
    call(tabs, session, "Target.setAutoAttach",
         "{\"autoAttach\":true,\"waitForDebuggerOnStart\":true,\"flatten\":true,"
         "\"filter\":[{\"type\":\"iframe\"}]}");
    tab_scripts_add(tabs->cdp, session, tabs->token);
    if (page) {
        call(tabs, session, "Emulation.setDeviceMetricsOverride",
             "{\"width\":1280,\"height\":1080,\"deviceScaleFactor\":1,\"mobile\":false}");
        call(tabs, session, "Emulation.setFocusEmulationEnabled", "{\"enabled\":true}");
        call(tabs, session, "Page.setInterceptFileChooserDialog", "{\"enabled\":true}");
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
        call(tabs, session, "Runtime.runIfWaitingForDebugger", NULL); /* whoever opened it waits, too */
        close_target(tabs, target);
        free(session);
        free(target);
        free(url);
        return;
    }
    struct tab *t = mem_zalloc(sizeof *t);
    *t = (struct tab){.next = tabs->first, .target = target, .session = session, .url = url};
    t->number = tabs->next_number++;
    t->parsed = t->loaded = true; /* the empty document that it begins with */
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

static void attached(struct tabs *tabs, const char *parent, struct span params)
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

static void detached(struct tabs *tabs, struct span params)
{
    char *session MEM_AUTO = member_dup(params, "sessionId");
    struct tab *t = session ? tab_of(tabs, session) : NULL;
    struct err gone;
    if (!t)
        return;
    if (strcmp(t->session, session) == 0) {
        unlink_tab(tabs, t);
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

static void crashed(struct tabs *tabs, struct tab *t, const char *session)
{
    struct err err;
    if (strcmp(t->session, session) != 0)
        return; /* a frame's: the page lives */
    t->crashed = true;
    t->navigation = NAVIGATION_NONE;
    ids_clear(&t->loading);
    ids_clear(&t->requests);
    err_set(&err, ERR_TOOL,
            "the page has crashed; load it again with web_refresh, or another one with web_go");
    cdp_fail(tabs->cdp, session, &err);
}

/* ---- loading ---- */

static void document_came(struct tab *t, struct span frame)
{
    struct buf url = BUF_INIT;
    t->unreachable = member_text(frame, "unreachableUrl", &url);
    if (!t->unreachable) {
        member_text(frame, "url", &url);
        member_text(frame, "urlFragment", &url);
    }
    free(t->url);
    t->url = buf_take(&url, NULL);
    t->navigation = NAVIGATION_NONE;
    t->parsed = t->loaded = t->crashed = t->stuck = false;
    t->due_ms = 0;
    t->loads++;
    ids_clear(&t->loading);
    ids_clear(&t->requests);
}

static void frame_navigated(struct tab *t, struct span params)
{
    struct span frame, parent;
    if (!json_member(params, "frame", &frame, NULL) || json_kind(frame) != JSON_OBJECT)
        return;
    if (!json_member(frame, "parentId", &parent, NULL) && member_is(frame, "id", t->target))
        document_came(t, frame);
}

static void lifecycle(struct tab *t, struct span params)
{
    if (!member_is(params, "frameId", t->target))
        return;
    if (member_is(params, "name", "DOMContentLoaded"))
        t->parsed = true;
    else if (member_is(params, "name", "load"))
        t->parsed = t->loaded = true;
}

static void started_navigating(struct tab *t, struct span params)
{
    struct span type;
    struct buf name BUF_AUTO = BUF_INIT;
    if (!member_is(params, "frameId", t->target) || !json_member(params, "navigationType", &type, NULL))
        return;
    json_string_text(type, &name);
    if (!strstr(buf_str(&name), "ameDocument"))
        t->navigation = NAVIGATION_STARTED;
}

static void frame_loads(struct tab *t, struct span params, bool loads)
{
    if (!member_is(params, "frameId", t->target)) {
        ids_set(&t->loading, member_dup(params, "frameId"), loads);
        return;
    }
    if (loads && t->navigation == NAVIGATION_REQUESTED) /* browsers that don't tell the start otherwise */
        t->navigation = NAVIGATION_STARTED;
    else if (!loads) {
        if (t->navigation == NAVIGATION_STARTED)
            t->due_ms = now_ms() + DOWNLOAD_MS;
        t->navigation = NAVIGATION_NONE;
        t->parsed = t->loaded = true;
    }
}

static void wants_to_navigate(struct tab *t, struct span params)
{
    if (member_is(params, "frameId", t->target) && member_is(params, "disposition", "currentTab") &&
        t->navigation == NAVIGATION_NONE)
        t->navigation = NAVIGATION_REQUESTED;
}

/* By a refresh that leads elsewhere; a page that only shows itself again is not waited for. */
static void schedules(struct tab *t, struct span params)
{
    struct span delay;
    if (!member_is(params, "frameId", t->target) || member_is(params, "url", t->url) ||
        !(member_is(params, "reason", "metaTagRefresh") ||
          member_is(params, "reason", "httpHeaderRefresh")) ||
        !json_member(params, "delay", &delay, NULL))
        return;
    long seconds = strtol(delay.s, NULL, 10);
    if (seconds <= REFRESH_MAX_S)
        t->due_ms = now_ms() + seconds * 1000 + REFRESH_SLACK_MS;
}

/* A new tab is about to come, and will load that. */
static void window_opens(struct tabs *tabs, struct span params)
{
    struct buf url BUF_AUTO = BUF_INIT;
    member_text(params, "url", &url);
    tabs->opening = url.len > 0 && strncmp(url.data, "about:", 6) != 0;
}

static void moved_within(struct tab *t, struct span params)
{
    char *url = member_is(params, "frameId", t->target) ? member_dup(params, "url") : NULL;
    if (!url)
        return;
    free(t->url);
    t->url = url;
    if (t->navigation == NAVIGATION_REQUESTED)
        t->navigation = NAVIGATION_NONE;
}

static void request_began(struct tab *t, struct span params)
{
    static const char *const types[] = {"XHR", "Fetch", "Script"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (member_is(params, "type", types[i]))
            ids_set(&t->requests, member_dup(params, "requestId"), true);
}

/* ---- what pages ask of people ---- */

static void dialog_opens(struct tabs *tabs, struct tab *t, struct span params)
{
    struct buf message BUF_AUTO = BUF_INIT;
    struct buf shown BUF_AUTO = BUF_INIT;
    struct buf type BUF_AUTO = BUF_INIT;
    member_text(params, "message", &message);
    page_text_quoted(&shown, buf_str(&message), message.len, NOTE_MAX);
    member_text(params, "type", &type);
    bool question = strcmp(buf_str(&type), "confirm") == 0 || strcmp(buf_str(&type), "prompt") == 0;
    bool accept = !question || tabs->accept_dialogs;
    if (strcmp(buf_str(&type), "beforeunload") == 0)
        tabs_note(tabs, "the page asked whether to leave it, which was answered with yes");
    else
        tabs_note(tabs, "the page showed a dialog (%s), which was %s: %s", buf_str(&type),
                  accept ? "accepted" : "dismissed", buf_str(&shown));
    call(tabs, t->session, "Page.handleJavaScriptDialog",
         accept ? "{\"accept\":true}" : "{\"accept\":false}");
}

static void download_begins(struct tabs *tabs, struct span params)
{
    struct buf name BUF_AUTO = BUF_INIT;
    struct buf url BUF_AUTO = BUF_INIT;
    struct buf shown BUF_AUTO = BUF_INIT;
    for (struct tab *t = tabs->first; t; t = t->next)
        t->due_ms = 0;
    member_text(params, "suggestedFilename", &name);
    member_text(params, "url", &url);
    buf_adds(&shown, "this is a download (");
    page_text_quoted(&shown, buf_str(&name), name.len, NOTE_MAX);
    buf_adds(&shown, "), which the browser does not keep; fetch ");
    page_text_word(&shown, buf_str(&url), url.len, NOTE_MAX);
    buf_adds(&shown, " with another tool");
    fail(tabs, buf_take(&shown, NULL));
}

/* ---- events ---- */

static void page_event(struct tabs *tabs, struct tab *t, const char *session, const char *method,
                       struct span params)
{
    static const struct {
        const char *method;
        void (*run)(struct tab *t, struct span params);
    } handlers[] = {
        {"Page.frameNavigated", frame_navigated},
        {"Page.lifecycleEvent", lifecycle},
        {"Page.frameStartedNavigating", started_navigating},
        {"Page.frameRequestedNavigation", wants_to_navigate},
        {"Page.frameScheduledNavigation", schedules},
        {"Page.navigatedWithinDocument", moved_within},
        {"Network.requestWillBeSent", request_began},
    };
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
        if (strcmp(method, handlers[i].method) == 0)
            handlers[i].run(t, params);
    if (strcmp(method, "Page.frameStartedLoading") == 0)
        frame_loads(t, params, true);
    else if (strcmp(method, "Page.frameStoppedLoading") == 0)
        frame_loads(t, params, false);
    else if (strcmp(method, "Page.frameDetached") == 0)
        ids_set(&t->loading, member_dup(params, "frameId"), false);
    else if (strcmp(method, "Network.loadingFinished") == 0 || strcmp(method, "Network.loadingFailed") == 0)
        ids_set(&t->requests, member_dup(params, "requestId"), false);
    else if (strcmp(method, "Inspector.targetCrashed") == 0)
        crashed(tabs, t, session);
    else if (strcmp(method, "Inspector.targetReloadedAfterCrash") == 0)
        t->crashed = false;
    else if (strcmp(method, "Page.javascriptDialogOpening") == 0)
        dialog_opens(tabs, t, params);
    else if (strcmp(method, "Page.windowOpen") == 0)
        window_opens(tabs, params);
    else if (strcmp(method, "Page.fileChooserOpened") == 0)
        fail(tabs, mem_strdup("this wants a file to be chosen, which this browser can't do"));
}

void tabs_event(struct tabs *tabs, const char *session, const char *method, struct span params)
{
    struct tab *t = *session ? tab_of(tabs, session) : NULL;
    if (strcmp(method, "Target.attachedToTarget") == 0)
        attached(tabs, session, params);
    else if (strcmp(method, "Target.detachedFromTarget") == 0)
        detached(tabs, params);
    else if (strcmp(method, "Browser.downloadWillBegin") == 0)
        download_begins(tabs, params);
    else if (t)
        page_event(tabs, t, session, method, params);
    else
        return;
    tabs->changed(tabs->arg);
}
