#include "tab_downloads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "page_text.h"
#include "tab_internal.h"

#define NOTE_MAX 500
#define NAME_BYTES 200
#define TRIES 1000

int downloads_open(struct downloads *d, const char *dir, struct err *err)
{
    if (!dir)
        return 0;
    if (*dir != '/')
        return err_set(err, ERR_TOOL, "downloads: '%.300s' is no absolute path", dir);
    d->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->dirfd < 0)
        return err_sys(err, ERR_TOOL, errno, "downloads: '%.300s'", dir);
    d->dir = mem_strdup(dir);
    return 0;
}

/* ---- names ---- */

/* The last part, without what no name of a file should have. */
static char *plain_name(const char *suggested)
{
    const char *slash = strrchr(suggested, '/');
    char *name = mem_dup(slash ? slash + 1 : suggested, strcspn(slash ? slash + 1 : suggested, "\n\r"));
    for (char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '_';
    if (strlen(name) > NAME_BYTES)
        name[NAME_BYTES] = '\0';
    if (*name && *name != '.')
        return name;
    free(name);
    return mem_strdup("download");
}

/* Gives the file a name that nothing has yet: report.pdf, report (2).pdf. 0, or -1 with errno. */
static int give_name(const struct downloads *d, struct download *f)
{
    size_t stem = strcspn(f->name, ".");
    char *plain MEM_AUTO = f->name;
    f->name = mem_strdup(plain);
    for (int i = 2; i < TRIES; i++) {
        if (linkat(d->dirfd, f->id, d->dirfd, f->name, 0) == 0)
            return unlinkat(d->dirfd, f->id, 0);
        /* file systems without links: nothing tells better whether the name is free */
        if (errno != EEXIST && faccessat(d->dirfd, f->name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            return renameat(d->dirfd, f->id, d->dirfd, f->name);
        free(f->name);
        f->name = mem_printf("%.*s (%d)%s", (int)stem, plain, i, plain + stem);
    }
    errno = EEXIST;
    return -1;
}

/* ---- events ---- */

static void refuse(struct tabs *tabs, const char *name, const char *url)
{
    struct buf shown BUF_AUTO = BUF_INIT;
    buf_adds(&shown, "this is a download (");
    page_text_quoted(&shown, name, strlen(name), NOTE_MAX);
    buf_adds(&shown, "), which the browser does not keep; fetch ");
    page_text_word(&shown, url, strlen(url), NOTE_MAX);
    buf_adds(&shown, " with another tool, or open a session with downloads");
    tabs_fail(tabs, buf_take(&shown, NULL));
}

static void forget_oldest(struct downloads *d)
{
    struct download *f = &d->list[0];
    free(f->id);
    free(f->url);
    free(f->name);
    memmove(d->list, d->list + 1, --d->n * sizeof *d->list);
}

void download_begins(struct tabs *tabs, struct span params)
{
    struct downloads *d = &tabs->downloads;
    struct buf name BUF_AUTO = BUF_INIT;
    struct buf url BUF_AUTO = BUF_INIT;
    for (struct tab *t = tabs->first; t; t = t->next)
        t->due_ms = 0;
    member_text(params, "suggestedFilename", &name);
    member_text(params, "url", &url);
    char *id = member_dup(params, "guid");
    if (d->dirfd < 0 || !id || strchr(id, '/')) {
        refuse(tabs, buf_str(&name), buf_str(&url));
        free(id);
        return;
    }
    if (d->n == DOWNLOADS_MAX && strcmp(d->list[0].state, "running") != 0)
        forget_oldest(d);
    if (d->n == DOWNLOADS_MAX) {
        free(id);
        return;
    }
    d->list = mem_realloc(d->list, (d->n + 1) * sizeof *d->list);
    d->list[d->n++] = (struct download){.id = id,
                                        .url = buf_take(&url, NULL),
                                        .name = plain_name(buf_str(&name)),
                                        .state = "running",
                                        .awaited = true};
}

static void ended(struct tabs *tabs, struct download *f, bool whole)
{
    struct downloads *d = &tabs->downloads;
    struct buf shown BUF_AUTO = BUF_INIT;
    f->awaited = false;
    f->state = whole ? "done" : "canceled";
    if (whole && give_name(d, f) < 0)
        f->state = err_text(errno);
    page_text_quoted(&shown, f->name, strlen(f->name), NOTE_MAX);
    if (strcmp(f->state, "done") == 0)
        tabs_note(tabs, "downloaded %s, %lld bytes, into %s", buf_str(&shown), f->bytes, d->dir);
    else
        tabs_note(tabs, "the download of %s came to nothing: %s", buf_str(&shown), f->state);
}

void download_goes_on(struct tabs *tabs, struct span params)
{
    struct downloads *d = &tabs->downloads;
    for (size_t i = 0; i < d->n; i++) {
        struct download *f = &d->list[i];
        if (!member_is(params, "guid", f->id) || strcmp(f->state, "running") != 0)
            continue;
        f->bytes = member_number(params, "receivedBytes");
        f->total = member_number(params, "totalBytes");
        if (!member_is(params, "state", "inProgress"))
            ended(tabs, f, member_is(params, "state", "completed"));
    }
}

/* ---- waiting ---- */

void downloads_watch(struct downloads *d)
{
    for (size_t i = 0; i < d->n; i++)
        d->list[i].awaited = false;
}

bool downloads_awaited(const struct downloads *d)
{
    bool awaited = false;
    for (size_t i = 0; i < d->n; i++)
        awaited = awaited || d->list[i].awaited;
    return awaited;
}

void downloads_note(struct tabs *tabs)
{
    const struct downloads *d = &tabs->downloads;
    for (size_t i = 0; i < d->n; i++) {
        struct buf shown BUF_AUTO = BUF_INIT;
        page_text_quoted(&shown, d->list[i].name, strlen(d->list[i].name), NOTE_MAX);
        if (d->list[i].awaited)
            tabs_note(tabs,
                      "%s is still being downloaded, %lld bytes so far; web_downloads tells when it is done",
                      buf_str(&shown), d->list[i].bytes);
    }
}
