#include "tab_dialog.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "page_text.h"
#include "tab_internal.h"

#define SHOWN_MAX 500 /* bytes */

void dialog_closes(struct tabs *tabs, const char *session)
{
    struct dialogs *d = &tabs->dialogs;
    if (!d->session || (session && strcmp(d->session, session) != 0))
        return;
    free(d->session);
    d->session = NULL;
    buf_truncate(&d->shown, 0);
}

static void answer(struct tabs *tabs, const struct tab *t, const char *type, const char *shown)
{
    bool question = strcmp(type, "confirm") == 0 || strcmp(type, "prompt") == 0;
    bool accept = !question || tabs->dialogs.accept;
    if (strcmp(type, "beforeunload") == 0)
        tabs_note(tabs, "the page asked whether to leave it, which was answered with yes");
    else
        tabs_note(tabs, "the page showed a dialog (%s), which was %s: %s", type,
                  accept ? "accepted" : "dismissed", shown);
    tab_call(tabs, t->session, "Page.handleJavaScriptDialog",
             accept ? "{\"accept\":true}" : "{\"accept\":false}");
}

void dialog_opens(struct tabs *tabs, const struct tab *t, struct span params)
{
    struct dialogs *d = &tabs->dialogs;
    struct buf message BUF_AUTO = BUF_INIT;
    struct buf shown BUF_AUTO = BUF_INIT;
    struct buf type BUF_AUTO = BUF_INIT;
    member_text(params, "message", &message);
    page_text_quoted(&shown, buf_str(&message), message.len, SHOWN_MAX);
    member_text(params, "type", &type);
    if (!d->ask) {
        answer(tabs, t, buf_str(&type), buf_str(&shown));
        return;
    }
    dialog_closes(tabs, NULL);
    d->session = mem_strdup(t->session);
    buf_addf(&d->shown, "%s %s", buf_str(&type), buf_str(&shown));
    buf_truncate(&message, 0);
    if (strcmp(buf_str(&type), "prompt") == 0 && member_text(params, "defaultPrompt", &message) &&
        message.len > 0) {
        buf_adds(&d->shown, " with ");
        page_text_quoted(&d->shown, buf_str(&message), message.len, SHOWN_MAX);
    }
}
