/* What the browser says of its pages: how far they have come with loading, and what they ask of people. */
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "mem.h"
#include "tab_internal.h"

#define REFRESH_MAX_S 3
#define REFRESH_SLACK_MS 300
#define DOWNLOAD_MS 100 /* from the end of a navigation without a document, until it turns out to be one */

/* ---- loading ---- */

static void document_came(struct tab *t, struct span frame)
{
    struct buf url = BUF_INIT;
    t->is.unreachable = member_text(frame, "unreachableUrl", &url);
    if (!t->is.unreachable) {
        member_text(frame, "url", &url);
        member_text(frame, "urlFragment", &url);
    }
    free(t->url);
    t->url = buf_take(&url, NULL);
    bool more = awaited_came(&t->awaited, member_dup(frame, "loaderId"));
    t->navigation = more ? NAVIGATION_STARTED : NAVIGATION_NONE;
    t->is.parsed = t->is.loaded = t->is.crashed = t->is.stuck = false;
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
        t->is.parsed = true;
    else if (member_is(params, "name", "load"))
        t->is.parsed = t->is.loaded = true;
}

static void started_navigating(struct tab *t, struct span params)
{
    struct span type;
    struct buf name BUF_AUTO = BUF_INIT;
    if (!member_is(params, "frameId", t->target) || !json_member(params, "navigationType", &type, NULL))
        return;
    json_string_text(type, &name);
    if (!strstr(buf_str(&name), "ameDocument")) {
        t->navigation = NAVIGATION_STARTED;
        awaited_starts(&t->awaited, member_dup(params, "loaderId"));
    }
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
        t->is.parsed = t->is.loaded = true;
    }
}

static void wants_to_navigate(struct tab *t, struct span params)
{
    if (!member_is(params, "frameId", t->target) || !member_is(params, "disposition", "currentTab"))
        return;
    t->awaited.leads = true;
    if (t->navigation == NAVIGATION_NONE)
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

/* Who uploads something has it asked for by a click. */
static void chooser_opens(struct tabs *tabs, const char *session, struct span params)
{
    struct chooser *c = &tabs->chooser;
    struct span node;
    if (!c->wanted || !json_member(params, "backendNodeId", &node, NULL)) {
        tabs_fail(tabs, mem_strdup("this wants a file to be chosen; web_upload gives it one"));
        return;
    }
    free(c->session);
    c->session = mem_strdup(session);
    c->single = member_is(params, "mode", "selectSingle");
    c->backend = strtoll(node.s, NULL, 10);
}

static void drag_begins(struct tabs *tabs, struct span params)
{
    struct span data;
    if (!json_member(params, "data", &data, NULL))
        return;
    free(tabs->dragged);
    tabs->dragged = mem_dup(data.s, data.n);
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
    traffic_event(tabs, session, method, params);
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
        tab_crashed(tabs, t, session);
    else if (strcmp(method, "Inspector.targetReloadedAfterCrash") == 0)
        t->is.crashed = false;
    else if (strcmp(method, "Page.javascriptDialogOpening") == 0)
        dialog_opens(tabs, t, params);
    else if (strcmp(method, "Page.windowOpen") == 0)
        window_opens(tabs, params);
    else if (strcmp(method, "Input.dragIntercepted") == 0)
        drag_begins(tabs, params);
    else if (strcmp(method, "Page.fileChooserOpened") == 0)
        chooser_opens(tabs, session, params);
    else if (strcmp(method, "Page.javascriptDialogClosed") == 0)
        dialog_closes(tabs, session);
}

void tabs_event(struct tabs *tabs, const char *session, const char *method, struct span params)
{
    struct tab *t = *session ? tab_of(tabs, session) : NULL;
    if (strcmp(method, "Target.attachedToTarget") == 0)
        tabs_attached(tabs, session, params);
    else if (strcmp(method, "Target.detachedFromTarget") == 0)
        tabs_detached(tabs, params);
    else if (strcmp(method, "Browser.downloadWillBegin") == 0)
        download_begins(tabs, params);
    else if (strcmp(method, "Browser.downloadProgress") == 0)
        download_goes_on(tabs, params);
    else if (t)
        page_event(tabs, t, session, method, params);
    else
        return;
    tabs->owner.changed(tabs->owner.arg);
}
