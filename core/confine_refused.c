/* What a confined program met, from what it says of it: a message of an error that walls give, and a path
 * that the policy closes, or words for a network that isn't there. A guess only where modes would refuse it,
 * too: that is told as no wall. */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "confine_internal.h"
#include "utf8.h"

enum { LONGEST = 2000, CONTEXT = 1000, NO_WRITE = 1, NO_ACCESS = 2, NO_NETWORK = 4 };

static const struct {
    const char *words;
    int meaning;
} phrases[] = {
    {"read-only file system", NO_WRITE},
    {"erofs", NO_WRITE},
    {"permission denied", NO_ACCESS},
    {"permissiondenied", NO_ACCESS},
    {"operation not permitted", NO_ACCESS},
    {"eacces", NO_ACCESS},
    {"eperm", NO_ACCESS},
    {"cross-device link", NO_WRITE},
    {"exdev", NO_WRITE},
    {"could not resolve", NO_NETWORK},
    {"couldn't connect", NO_NETWORK},
    {"name resolution", NO_NETWORK},
    {"name or service not known", NO_NETWORK},
    {"network is unreachable", NO_NETWORK},
    {"enetunreach", NO_NETWORK},
    {"eai_again", NO_NETWORK},
    {"enotfound", NO_NETWORK},
};
static const char *const of_network[] = {"socket", "connect", "bind", "dial", "listen", "getaddrinfo"};

static int meaning_of(const char *line)
{
    int found = 0;
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
        if (strstr(line, phrases[i].words))
            found |= phrases[i].meaning;
    return found;
}

static bool is_below(const char *path, const char *top)
{
    size_t n = strlen(top);
    n -= n == 1;
    return strncmp(path, top, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool is_listed(const struct confine *c, enum confine_what what, const char *path)
{
    bool found = false;
    for (char **p = c->paths[what]; p && *p && !found; p++)
        found = is_below(path, *p);
    return found;
}

/* By the modes: root may. */
static bool might_write(const struct confine_report *at, const char *path)
{
    struct stat st;
    if (at->uid == 0)
        return true;
    if (stat(path, &st) < 0)
        return false;
    unsigned bits = st.st_uid == at->uid   ? st.st_mode >> 6
                    : st.st_gid == at->gid ? st.st_mode >> 3
                                           : st.st_mode;
    return bits & 2;
}

/* The path as the kernel sees it: of what isn't there, its directory and its name. `closest`: what is there.
 */
static bool resolve(const char *word, const char *cwd, char path[PATH_MAX], char closest[PATH_MAX])
{
    char whole[PATH_MAX];
    int n = *word == '/' ? snprintf(whole, sizeof whole, "%s", word)
                         : snprintf(whole, sizeof whole, "%s/%s", cwd, word);
    if (n >= (int)sizeof whole)
        return false;
    if (realpath(whole, path))
        return snprintf(closest, PATH_MAX, "%s", path) > 0;
    char *slash = strrchr(whole, '/');
    const char *name = slash + 1;
    *slash = '\0';
    return realpath(*whole ? whole : "/", closest) &&
           snprintf(path, PATH_MAX, "%s/%s", strcmp(closest, "/") == 0 ? "" : closest, name) < PATH_MAX;
}

static enum confine_what wall_at(const struct confine *c, const char *path, const char *closest, int meaning)
{
    bool readable = is_listed(c, CONFINE_READ, path) || is_listed(c, CONFINE_WRITE, path) ||
                    is_listed(c, CONFINE_EXECUTE, path);
    if (strncmp(path, "/dev/", 5) == 0 && is_listed(c, CONFINE_WRITE, "/dev"))
        return CONFINE_PARTS;
    for (const char *const *d = confine_devices; *d; d++)
        if (strcmp(path, *d) == 0)
            return CONFINE_PARTS;
    if (is_listed(c, CONFINE_HIDE, path))
        return CONFINE_HIDE;
    if (c->wanted[CONFINE_READ] && !readable && meaning != NO_WRITE)
        return CONFINE_READ;
    struct stat st;
    if (c->wanted[CONFINE_EXECUTE] && !is_listed(c, CONFINE_EXECUTE, path) && stat(path, &st) == 0 &&
        S_ISREG(st.st_mode) && (st.st_mode & 0111) && meaning != NO_WRITE)
        return CONFINE_EXECUTE;
    return c->wanted[CONFINE_WRITE] && !is_listed(c, CONFINE_WRITE, path) && might_write(c->report, closest)
               ? CONFINE_WRITE
               : CONFINE_PARTS;
}

static void tell(const struct confine *c, struct confine_refusal *r, enum confine_what what, const char *path)
{
    static const char *const words[] = {[CONFINE_READ] = "Not to be read: ",
                                        [CONFINE_WRITE] = "Read-only: ",
                                        [CONFINE_EXECUTE] = "Not to be run: ",
                                        [CONFINE_HIDE] = "Hidden: ",
                                        [CONFINE_NETWORK] = "No network"};
    r->what = what;
    snprintf(r->path, sizeof r->path, "%s", path);
    r->path[utf8_valid_prefix(r->path, strlen(r->path))] = '\0';
    snprintf(r->said, sizeof r->said, "%s%s (policy%s%s)", words[what], r->path, *c->preset ? " " : "",
             c->preset);
}

/* The end of a word: that of the quotes in which it stands, else a blank, a comma or a colon before one. */
static size_t word_length(const char *s, char before)
{
    if (before == '\'' || before == '"' || before == '`')
        return strcspn(s, before == '`' ? "'" : before == '"' ? "\"" : "'");
    size_t n = strcspn(s, " \t,;'\")");
    while (n > 0 && s[n - 1] == ':')
        n--;
    const char *colon = memchr(s, ':', n);
    return colon ? (size_t)(colon - s) : n;
}

static bool try_word(const struct confine *c, const char *cwd, const char *s, size_t n, int meaning,
                     struct confine_refusal *r)
{
    char word[PATH_MAX], path[PATH_MAX], closest[PATH_MAX];
    if (n == 0 || n >= sizeof word)
        return false;
    memcpy(word, s, n);
    word[n] = '\0';
    if (!resolve(word, cwd, path, closest))
        return false;
    enum confine_what what = wall_at(c, path, closest, meaning);
    if (what != CONFINE_PARTS)
        tell(c, r, what, path);
    return what != CONFINE_PARTS;
}

/* Of the network it is said in few words, which may stand some lines before. */
static bool is_of_network(const char *begin, const char *line, const char *end)
{
    const char *from = line - begin > CONTEXT ? line - CONTEXT : begin;
    for (size_t i = 0; i < sizeof of_network / sizeof *of_network; i++)
        if (memmem(from, (size_t)(end - from), of_network[i], strlen(of_network[i])))
            return true;
    return false;
}

static bool begins_path(const char *line, const char *s)
{
    char before = s == line ? '\0' : s[-1];
    bool quoted = before == '\'' || before == '"' || before == '`';
    return quoted ? *s == '/' || *s == '.' || isalnum((unsigned char)*s)
                  : *s == '/' && before && strchr(" \t(=[", before);
}

/* In a line: words that are paths, absolute or in quotes; else those in front of the message, but the
 * program's name, which stands first. Where no wall is at them it may stand in another directory than is
 * known. */
static bool try_line(const struct confine *c, const char *cwd, const char *line, int meaning,
                     struct confine_refusal *r)
{
    bool found = false, absolute = false;
    for (const char *s = line; *s; s++) {
        if (!begins_path(line, s))
            continue;
        size_t n = word_length(s, s > line ? s[-1] : ' ');
        absolute = absolute || *s == '/';
        found |= try_word(c, cwd, s, n, meaning, r);
        s += n > 0 ? n - 1 : 0;
    }
    for (const char *end = found || absolute ? NULL : strstr(line, ": "); end; end = strstr(end + 2, ": ")) {
        const char *begin = end;
        while (begin > line && !isspace((unsigned char)begin[-1]))
            begin--;
        char word[CONFINE_SAID / 2];
        if (begin <= line + strspn(line, " \t") || end == begin || isdigit((unsigned char)*begin))
            continue;
        found |= try_word(c, cwd, begin, (size_t)(end - begin), meaning, r);
        snprintf(word, sizeof word, "%.*s", (int)(end - begin), begin);
        if (!found && (meaning & NO_WRITE) && c->wanted[CONFINE_WRITE]) { /* in what directory? */
            tell(c, r, CONFINE_WRITE, word);
            return true;
        }
    }
    return found;
}

/* Small letters, no NUL, and quotes of one kind. */
static void copy_line(char *line, char *lower, const char *text, size_t n)
{
    size_t to = 0;
    for (size_t i = 0; i < n; i++, to++) {
        bool curly = i + 2 < n && memcmp(text + i, "\xe2\x80", 2) == 0 && (text[i + 2] & ~1) == '\x98';
        line[to] = text[i] ? text[i] : ' ';
        if (curly) {
            line[to] = '\'';
            i += 2;
        }
        lower[to] = (char)tolower((unsigned char)line[to]);
    }
    line[to] = lower[to] = '\0';
}

bool confine_refused(const struct confine *c, const char *cwd, const char *text, size_t n,
                     struct confine_refusal *refusal)
{
    char line[LONGEST], lower[LONGEST];
    bool found = false;
    const char *end = text + n;
    cwd = cwd ? cwd : c->report->cwd;
    for (const char *at = text, *stop; at < end; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        copy_line(line, lower, at, stop - at < LONGEST ? (size_t)(stop - at) : LONGEST - 1);
        int meaning = meaning_of(lower);
        if ((meaning & ~NO_NETWORK) && try_line(c, cwd, line, meaning & ~NO_NETWORK, refusal)) {
            found = true;
        } else if (c->wanted[CONFINE_NETWORK] &&
                   ((meaning & NO_NETWORK) || ((meaning & NO_ACCESS) && is_of_network(text, at, stop)))) {
            tell(c, refusal, CONFINE_NETWORK, "");
            found = true;
        }
    }
    return found;
}
