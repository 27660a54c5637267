#include "find.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mem.h"
#include "safe_path.h"
#include "self.h"
#include "commands/settle/settle.h"
#include "spawn.h"
#include "user.h"

#define VARIABLE "TOOLBOX_BROWSER"

static const char *const names[] = {"chromium",      "chromium-browser",
                                    "google-chrome", "google-chrome-stable",
                                    "chrome",        "chrome-headless-shell"};

struct search {
    char *const *env;
    bool safe;         /* nobody else may be able to change what is run */
    struct err unsafe; /* why the first one that was found was passed over */
};

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool is_wanted(struct search *s, const char *path)
{
    struct err why;
    if (!is_program(path))
        return false;
    if (!s->safe || safe_path_file(path, &why) == 0)
        return true;
    if (!*s->unsafe.msg)
        s->unsafe = why;
    return false;
}

/* ---- PATH ---- */

static char *find_in(struct search *s, const char *path, const char *name)
{
    for (const char *at = path;; at++) {
        size_t n = strcspn(at, ":");
        char *file = mem_printf("%.*s/%s", (int)n, at, name);
        if (*file == '/' && is_wanted(s, file))
            return file;
        free(file);
        at += n;
        if (*at == '\0')
            return NULL;
    }
}

/* ---- Playwright's places ---- */

/* PLACE/chromium-1234/chrome-linux/chrome and the like; of several the newest, and a whole browser rather
 * than the part of one that has no window. */
struct found {
    struct search *search;
    char *path;
    bool whole;
    long number;
};

static void consider(struct found *best, char *path, bool whole, long number)
{
    bool better = !best->path || (whole && !best->whole) || (whole == best->whole && number > best->number);
    if (better && is_wanted(best->search, path)) {
        free(best->path);
        *best = (struct found){best->search, path, whole, number};
    } else {
        free(path);
    }
}

static void look_in_version(struct found *best, const char *place, const char *version)
{
    static const char *const programs[] = {"chrome", "headless_shell", "chrome-headless-shell"};
    const char *dash = strrchr(version, '-');
    char *dir MEM_AUTO = mem_printf("%s/%s", place, version);
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        for (size_t i = 0; i < 3 && strncmp(e->d_name, "chrome-", 7) == 0; i++)
            consider(best, mem_printf("%s/%s/%s", dir, e->d_name, programs[i]), i == 0,
                     dash ? strtol(dash + 1, NULL, 10) : 0);
    if (d)
        closedir(d);
}

static void look_in_place(struct found *best, const char *place)
{
    DIR *d = opendir(place);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (strncmp(e->d_name, "chromium", 8) == 0)
            look_in_version(best, place, e->d_name);
    if (d)
        closedir(d);
}

static char *find_of_playwright(struct search *s)
{
    struct found best = {.search = s};
    struct user self USER_AUTO;
    const char *home = spawn_env_get(s->env, "HOME");
    const char *set = spawn_env_get(s->env, "PLAYWRIGHT_BROWSERS_PATH");
    user_of_uid(&self, geteuid());
    char *places[] = {set ? mem_strdup(set) : NULL, home ? mem_printf("%s/.cache/ms-playwright", home) : NULL,
                      mem_printf("%s/.cache/ms-playwright", self.home), mem_strdup("/ms-playwright"),
                      mem_strdup("/root/.cache/ms-playwright")};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i] && !best.path)
            look_in_place(&best, places[i]);
        free(places[i]);
    }
    return best.path;
}

/* ---- what came along with this program ---- */

/* One of the names in a folder, or in a folder there. */
static char *find_within(struct search *s, const char *dir, int levels)
{
    static const char headless[] = "headless_shell";
    for (size_t i = 0; i <= sizeof names / sizeof *names; i++) {
        char *file = mem_printf("%s/%s", dir, i < sizeof names / sizeof *names ? names[i] : headless);
        if (is_wanted(s, file))
            return file;
        free(file);
    }
    char *found = NULL;
    DIR *d = levels > 0 ? opendir(dir) : NULL;
    for (struct dirent *e; d && !found && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') {
            char *inner MEM_AUTO = mem_printf("%s/%s", dir, e->d_name);
            found = find_within(s, inner, levels - 1);
        }
    if (d)
        closedir(d);
    return found;
}

static char *find_brought_along(struct search *s)
{
    char *self MEM_AUTO = self_path();
    char *with MEM_AUTO = self ? settle_with_path(self) : NULL;
    return with ? find_within(s, with, 2) : NULL;
}

/* ---- all of it ---- */

static char *find_named(struct search *s, const char *path, struct err *err)
{
    if (is_wanted(s, path))
        return mem_strdup(path);
    if (*s->unsafe.msg)
        err_set(err, ERR_TOOL, "$" VARIABLE " names a program that is not run: %.600s", s->unsafe.msg);
    else
        err_set(err, ERR_TOOL, "$" VARIABLE " is '%s', which is no program that can be run", path);
    return NULL;
}

static char *find_installed(struct search *s)
{
    const char *path = spawn_env_get(s->env, "PATH");
    char *file = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !file; i++)
        file = find_in(s, path ? path : "/usr/local/bin:/usr/bin:/bin", names[i]);
    if (!file)
        file = find_brought_along(s);
    return file ? file : find_of_playwright(s);
}

char *browser_find(char *const *env, bool safe, struct err *err)
{
    struct search s = {.env = env, .safe = safe};
    const char *set = getenv(VARIABLE);
    if (set && *set)
        return find_named(&s, set, err);
    char *file = find_installed(&s);
    if (!file && *s.unsafe.msg)
        err_set(
            err, ERR_TOOL,
            "the browser that is here is not run, others could have changed it: %.600s; take that right from "
            "them (chmod -R go-w), or let the browser run as another user (user)",
            s.unsafe.msg);
    else if (!file)
        err_set(err, ERR_TOOL,
                "there is no browser here: install one (Debian and Ubuntu: apt-get install chromium; Alpine: "
                "apk add chromium), let $" VARIABLE
                " name one, or bring one along with toolbox inject --with DIR");
    return file;
}
