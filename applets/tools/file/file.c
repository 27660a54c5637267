/* `toolbox file`: the methods as people and scripts call them. */
#include "file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "applet.h"
#include "base64.h"
#include "command.h"
#include "commands/exec/command_print.h"
#include "file_call.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "duration.h"

#define PIECE (1LL << 20) /* bytes of a file in one call */
#define ALL "100000"

/* ---- what is printed ---- */

/* A fact for people: modes octal, times as such. */
static void put_fact(struct buf *out, const char *name, struct span value)
{
    if (strcmp(name, "mode") == 0)
        buf_addf(out, "%04o", (unsigned)strtoul(value.s, NULL, 10));
    else if (strcmp(name, "mtime") == 0)
        time_put(out, strtoll(value.s, NULL, 10));
    else if (!json_string_text(value, out))
        buf_add(out, value.s, value.n);
}

static int print_facts(const struct command_line *c, struct span result)
{
    struct buf out BUF_AUTO = BUF_INIT;
    struct span key, value;
    for (size_t at = 0; json_next_member(result, &at, &key, &value);) {
        struct buf name BUF_AUTO = BUF_INIT;
        json_string_text(key, &name);
        buf_addf(&out, "%-16s", buf_str(&name));
        put_fact(&out, buf_str(&name), value);
        buf_addc(&out, '\n');
    }
    return command_print(c, span_of(&out));
}

static int print(const struct command_line *c, struct span result)
{
    if (command_value(c, "json"))
        return command_print_line(c, result);
    return json_kind(result) == JSON_OBJECT && !command_value(c, "quiet") ? print_facts(c, result) : EXIT_OK;
}

/* ---- commands ---- */

static int do_one(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    int status = file_call(c, 0, &params, &result);
    return status == EXIT_OK ? print(c, span_of(&result)) : status;
}

/* Of several paths each; a failure is said and the others are done. */
static int do_each(const struct command_line *c)
{
    struct command_line one = *c;
    int status = EXIT_OK;
    one.n_words = 1;
    for (int i = 0; i < c->n_words && status != EXIT_USAGE; i++) {
        one.words = c->words + i;
        int failed = do_one(&one);
        status = failed != EXIT_OK ? failed : status;
    }
    return status;
}

static int do_chmod(const struct command_line *c)
{
    int status = EXIT_OK;
    for (int i = 1; i < c->n_words && status != EXIT_USAGE; i++) {
        struct buf params BUF_AUTO = BUF_INIT;
        struct buf result BUF_AUTO = BUF_INIT;
        buf_addc(&params, '{');
        if (strcmp(c->command->name, "chown") == 0)
            json_member_string(&params, "owner", c->words[0]);
        else if (file_put_mode(c, c->words[0], &params) != EXIT_OK)
            return EXIT_USAGE;
        int failed = file_call(c, i, &params, &result);
        status = failed != EXIT_OK ? failed : status;
    }
    return status;
}

/* One piece of a file: its bytes, and whether they are the last. */
static int read_piece(const struct command_line *c, long long at, long long n, struct buf *bytes, bool *end)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    struct buf text BUF_AUTO = BUF_INIT;
    struct span value;
    buf_addf(&params, "{\"encoding\":\"base64\",\"offset\":%lld,\"length\":%lld", at, n < PIECE ? n : PIECE);
    json_member_string(&params, "path", c->words[0]);
    command_put_string(c, "user", &params, "user");
    int status = command_call(c, "file_read", &params, &result);
    if (status != EXIT_OK)
        return status;
    if (!json_member(span_of(&result), "data", &value, NULL) || !json_string_text(value, &text) ||
        !base64_get(bytes, buf_str(&text), text.len))
        return applet_failed(c->applet->name, "the answer has no data");
    *end = bytes->len == 0 || (json_member(span_of(&result), "end", &value, NULL) && span_is(value, "true"));
    return EXIT_OK;
}

/* To the byte, in pieces. */
static int do_read(const struct command_line *c)
{
    struct buf numbers BUF_AUTO = BUF_INIT;
    const char *from = command_value(c, "offset"), *length = command_value(c, "length");
    if (command_put_number(c, "offset", &numbers, "o") != EXIT_OK ||
        command_put_number(c, "length", &numbers, "l") != EXIT_OK)
        return EXIT_USAGE;
    long long at = from ? strtoll(from, NULL, 10) : 0, left = length ? strtoll(length, NULL, 10) : LLONG_MAX;
    for (bool end = false; !end && left > 0;) {
        struct buf bytes BUF_AUTO = BUF_INIT;
        int status = read_piece(c, at, left, &bytes, &end);
        if (status == EXIT_OK)
            status = command_print(c, span_of(&bytes));
        if (status != EXIT_OK)
            return status;
        at += (long long)bytes.len;
        left -= (long long)bytes.len;
    }
    return EXIT_OK;
}

static int do_write(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    struct buf bytes BUF_AUTO = BUF_INIT;
    if (io_read_all(STDIN_FILENO, &bytes) < 0)
        return applet_failed(c->applet->name, "standard input can't be read: %s", err_text(errno));
    buf_adds(&params, "{\"encoding\":\"base64\",\"data\":\"");
    base64_put(&params, buf_str(&bytes), bytes.len);
    buf_addc(&params, '"');
    int status = file_call(c, 0, &params, &result);
    return status == EXIT_OK && command_value(c, "json") ? command_print_line(c, span_of(&result)) : status;
}

/* A line for each entry. */
static void put_entry(struct buf *out, struct span entry)
{
    static const char *const keys[] = {"mode", "user", "group", "size", "mtime", "path", "target"};
    static const int widths[] = {0, -8, -8, 10, 0, 0, 0};
    struct span values[7], type;
    int counts[7];
    json_member(entry, "type", &type, NULL);
    json_members(entry, keys, 7, values, counts);
    buf_addc(out, span_is(type, "\"file\"") ? '-' : span_is(type, "\"fifo\"") ? 'p' : type.s[1]);
    for (int i = 0; i < 7; i++) {
        struct buf text BUF_AUTO = BUF_INIT;
        if (counts[i] == 0)
            continue;
        put_fact(&text, keys[i], values[i]);
        buf_addf(out, "%s%*s", i == 0 ? "" : i == 6 ? " -> " : " ", widths[i], buf_str(&text));
    }
    buf_addc(out, '\n');
}

/* The answer: what `put` makes of each element of that member, which is in `out` as well, or with --json as
 * it is. */
static int print_each(const struct command_line *c, struct buf *params, struct buf *result, const char *key,
                      void (*put)(struct buf *out, struct span element), struct buf *out)
{
    struct span list, element;
    int status = file_call(c, 0, params, result);
    if (status != EXIT_OK || command_value(c, "json"))
        return status == EXIT_OK ? command_print_line(c, span_of(result)) : status;
    json_member(span_of(result), key, &list, NULL);
    for (size_t at = 0; json_element(list, &at, &element);)
        put(out, element);
    return command_print(c, span_of(out));
}

/* Whether people read it, and it says more than what was printed. */
static bool has_more(const struct command_line *c, const struct buf *result, const char *key,
                     struct span *value)
{
    return result->len > 0 && !command_value(c, "json") && json_member(span_of(result), key, value, NULL);
}

static int do_list(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    struct buf out BUF_AUTO = BUF_INIT;
    struct span next;
    if (c->n_words == 0)
        buf_adds(&params, "{\"path\":\".\"");
    if (!command_value(c, "limit")) {
        buf_addc(&params, params.len == 0 ? '{' : ',');
        buf_adds(&params, "\"limit\":" ALL);
    }
    int status = print_each(c, &params, &result, "entries", put_entry, &out);
    if (has_more(c, &result, "next", &next))
        fprintf(stderr, "toolbox file: there are more: --after %.*s\n", (int)next.n, next.s);
    return status;
}

/* What has ended it before its end. */
static void say_cut(const struct command_line *c, const struct buf *result)
{
    struct span cut, late;
    if (!has_more(c, result, "truncated", &cut) || !span_is(cut, "true"))
        return;
    bool by_time = json_member(span_of(result), "timed_out", &late, NULL) && span_is(late, "true");
    fprintf(stderr, "toolbox file: there may be more: %s\n", by_time ? "--timeout" : "--limit");
}

static void put_path(struct buf *out, struct span path)
{
    json_string_text(path, out);
    buf_addc(out, '\n');
}

static int do_find(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    struct buf out BUF_AUTO = BUF_INIT;
    int status = print_each(c, &params, &result, "paths", put_path, &out);
    say_cut(c, &result);
    return status;
}

/* Lines with their numbers: `mark` behind those is ':' where a match is, '-' around it. */
static void put_lines(struct buf *out, const char *path, long long number, char mark, const char *text)
{
    for (size_t n; *text; text += n + (text[n] == '\n'), number++) {
        n = strcspn(text, "\n");
        buf_addf(out, "%s%c%lld%c", path, mark, number, mark);
        buf_add(out, text, n);
        buf_addc(out, '\n');
        if (!text[n])
            break;
    }
}

static long long count_lines(const char *text)
{
    long long n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void put_match(struct buf *out, struct span match)
{
    static const char *const keys[] = {"path", "line", "text", "before", "after"};
    struct buf texts[5] = {BUF_INIT, BUF_INIT, BUF_INIT, BUF_INIT, BUF_INIT};
    struct span values[5];
    int counts[5];
    json_members(match, keys, 5, values, counts);
    for (int i = 0; i < 5; i++)
        if (counts[i] > 0 && i != 1)
            json_string_text(values[i], &texts[i]);
    long long number = strtoll(values[1].s, NULL, 10);
    const char *path = buf_str(&texts[0]), *before = buf_str(&texts[3]);
    put_lines(out, path, number - count_lines(before), '-', before);
    buf_addf(out, "%s:%lld:%s\n", path, number, buf_str(&texts[2]));
    put_lines(out, path, number + 1, '-', buf_str(&texts[4]));
    for (int i = 0; i < 5; i++)
        buf_release(&texts[i]);
}

static int do_search(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    struct buf out BUF_AUTO = BUF_INIT;
    int status = print_each(c, &params, &result, "matches", put_match, &out);
    say_cut(c, &result);
    return status != EXIT_OK || out.len > 0 || command_value(c, "json")
               ? status
               : applet_failed(c->applet->name, "nothing was found");
}

/* A line for each change. */
static int print_changes(const struct command_line *c, struct span changes)
{
    static const char *const keys[] = {"change", "path", "directory"};
    struct buf out BUF_AUTO = BUF_INIT;
    struct span change, values[3];
    int counts[3];
    for (size_t at = 0; json_element(changes, &at, &change);) {
        json_members(change, keys, 3, values, counts);
        json_string_text(values[0], &out);
        buf_addc(&out, ' ');
        json_string_text(values[1], &out);
        buf_adds(&out, span_is(values[2], "true") ? "/\n" : "\n");
    }
    return command_print(c, span_of(&out));
}

/* Until it ends, is ended, or (--timeout) nothing has changed for so long. */
static int do_watch(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct span cursor, changes = {0}, ended;
    int status;
    char here[PATH_MAX]; /* a server may have been started elsewhere */
    bool relative = *c->words[0] != '/' && getcwd(here, sizeof here);
    char *path MEM_AUTO = relative ? mem_printf("%s/%s", here, c->words[0]) : mem_strdup(c->words[0]);
    buf_adds(&params, "{");
    json_member_string(&params, "path", path);
    json_member_int(&params, "ends_with", getpid());
    json_member_bool(&params, "recursive", !command_value(c, "flat"));
    for (bool first = true;; first = false) {
        struct buf result BUF_AUTO = BUF_INIT;
        status = file_call(c, c->n_words, &params, &result);
        if (status != EXIT_OK)
            return status;
        json_member(span_of(&result), "changes", &changes, NULL);
        bool any = changes.n > 2,
             last = json_member(span_of(&result), "ended", &ended, NULL) && span_is(ended, "true");
        if (command_value(c, "json") && (any || first))
            status = command_print_line(c, span_of(&result));
        else if (any)
            status = print_changes(c, changes);
        if (status != EXIT_OK || last || (!any && !first))
            return status;
        buf_truncate(&params, 0);
        json_member(span_of(&result), "cursor", &cursor, NULL);
        buf_adds(&params, "{\"cursor\":");
        buf_add(&params, cursor.s, cursor.n);
    }
}

/* ---- their table ---- */

static const struct command_option options[] = {
    {"json", NULL, "the result as JSON", 0},
    {"user", "USER", "as that user; another one takes root", 0},
    {"no-follow", NULL, "of a link: the link itself", 0},
    {"mode", "MODE", "octal, as 0644", 0},
    {"owner", "OWNER", "whose it is to be: USER, USER:GROUP or :GROUP", 0},
    {"gid", "GID", "the number of its group", 0},
    {"parents", NULL, "make the directories that are missing", 'p'},
    {"recursive", NULL, "a directory with all that is in it", 'r'},
    {"overwrite", NULL, "also in the place of a file that is there", 0},
    {"append", NULL, "behind its end", 0},
    {"exclusive", NULL, "only where nothing is yet", 0},
    {"hard", NULL, "another name of the same file", 0},
    {"offset", "N", "from that byte on", 0},
    {"length", "N", "at most so many bytes", 0},
    {"depth", "N", "levels of directories (1)", 0},
    {"limit", "N", "at most so many", 0},
    {"glob", "PATTERN", "only what is like that", 0},
    {"sort", "ORDER", "name, size (the largest first) or mtime (the newest first)", 0},
    {"after", "PATH", "only what comes behind that path", 0},
    {"sha256", NULL, "with the sum", 0},
    {"mtime", "SECONDS", "since 1970 (now)", 0},
    {"type", "TYPE", "file, directory, symlink or other", 0},
    {"min-size", "N", "files of so many bytes at least", 0},
    {"max-size", "N", "files of so many bytes at most", 0},
    {"newer", "SECONDS", "changed later, since 1970", 0},
    {"older", "SECONDS", "changed before", 0},
    {"all", NULL, "also names that begin with a dot", 'a'},
    {"no-ignore", NULL, "also what .gitignore and .ignore leave out", 0},
    {"exclude", "PATTERN", "leave out what is called so; may be repeated", 0},
    {"literal", NULL, "the pattern is a text", 'F'},
    {"ignore-case", NULL, "large and small letters are the same", 'i'},
    {"multiline", NULL, "a match may go over several lines", 'U'},
    {"count", NULL, "how many lines match in each file", 'c'},
    {"context", "N", "so many lines around each match", 'C'},
    {"flat", NULL, "not what is in the directories there", 0},
    {"timeout", COMMAND_TIME, "give up then (10 s; a watch: when nothing has changed for so long)", 0},
    {0},
};

#define SEEKS "json user all no-ignore exclude limit timeout"

static const struct command list[] = {
    {"read", "PATH", "user offset length", "write a file's bytes to stdout", NULL, "/etc/hostname", 1, 1,
     do_read, NULL},
    {"write", "PATH", "json user mode owner parents append exclusive offset",
     "put stdin in the place of a file's content, at once", NULL, "notes.txt <notes", 1, 1, do_write, NULL},
    {"stat", "PATH...", "json user no-follow sha256", "tell what is known of files", NULL, "/etc/passwd", 1,
     COMMAND_ANY, do_each, NULL},
    {"list", "[PATH]", "json user depth glob limit sort after", "list a directory, or a tree", NULL,
     "/etc --glob '**/*.conf' --depth 5", 0, 1, do_list, NULL},
    {"find", "PATH [PATTERN]", "type min-size max-size newer older " SEEKS,
     "find files by name, kind, size or time",
     "A PATTERN is for names, or with a slash for paths from PATH on.", ". '*.c' --min-size 10000", 1, 2,
     do_find, NULL},
    {"search", "PATTERN [PATH]", "literal ignore-case multiline count glob context " SEEKS,
     "find lines in text files", "PATTERN is an extended regular expression.", "'TODO|FIXME' . --glob '*.c'",
     1, 2, do_search, NULL},
    {"watch", "PATH", "json user exclude flat timeout", "print what changes in a tree, as it changes",
     "A path with a slash behind it is a directory's. Names come once 30 ms have passed without another "
     "change.",
     ". --exclude .git --timeout 1", 1, 1, do_watch, NULL},
    {"mkdir", "PATH...", "user mode parents", "make directories", NULL, "-p a/b/c", 1, COMMAND_ANY, do_each,
     NULL},
    {"rm", "PATH...", "user recursive", "remove files, links or directories", NULL, "-r a", 1, COMMAND_ANY,
     do_each, NULL},
    {"mv", "PATH TO", "user overwrite", "rename within a file system", NULL, "old new", 2, 2, do_one, NULL},
    {"cp", "PATH TO", "json user overwrite recursive", "copy a file or a tree", NULL, "-r src copy", 2, 2,
     do_one, NULL},
    {"ln", "TO PATH", "user hard", "make a link, a symbolic one", NULL, "/etc/hosts hosts", 2, 2, do_one,
     NULL},
    {"chmod", "MODE PATH...", "user", "set permission bits", NULL, "0755 run.sh", 2, COMMAND_ANY, do_chmod,
     NULL},
    {"chown", "OWNER PATH...", "user gid no-follow", "set the owner",
     "OWNER is USER, USER:GROUP or :GROUP, by name or number.", "app:app notes.txt", 2, COMMAND_ANY, do_chmod,
     NULL},
    {"touch", "PATH...", "user mtime", "set the time of change, or make files", NULL, "notes.txt", 1,
     COMMAND_ANY, do_each, NULL},
    {"du", "PATH...", "json user", "tell how much lies there", NULL, "/usr", 1, COMMAND_ANY, do_each, NULL},
    {"space", "PATH", "json user", "tell what its file system has", NULL, "/", 1, 1, do_one, NULL},
    {0},
};

static const struct command_set commands = {
    .about = "Reads, writes, finds and changes files and trees without a shell.",
    .more = "Exit status: 0 done, 1 refused, or (search) nothing was found, 2 usage.",
    .options = options,
    .list = list,
    .packed = true,
};

const struct applet file_applet = {
    .name = "file",
    .summary = "read, write, find and change files and trees",
    .commands = &commands,
};
