#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "file_path.h"
#include "file_request.h"
#include "file_watch.h"
#include "mem.h"
#include "relocate.h"
#include "rpc.h"
#include "tools/text_editor/edit_encoding.h"
#include "work_as_user.h"

#define AT(member) offsetof(struct file_request, member)
#define MODE_MAX 07777
#define LENGTH_MAX (16 << 20)
#define DEPTH_MAX 100
#define LIMIT_MAX 100000
#define CONTEXT_MAX 20
#define SEEK_MAX_S 20 /* a connection that is silent for longer is given up */

#define PATH(about_)                                                                                         \
    {                                                                                                        \
        .key = "path", .type = PARAM_NAME, .offset = AT(path), .required = true, PARAM_DOC(about_, NULL)     \
    }
#define TO(about_)                                                                                           \
    {                                                                                                        \
        .key = "to", .type = PARAM_NAME, .offset = AT(to), .required = true, PARAM_DOC(about_, NULL)         \
    }
#define USER                                                                                                 \
    {                                                                                                        \
        .key = "user", .type = PARAM_USER, .offset = AT(user),                                               \
        PARAM_DOC("As whom it is done; another user takes root", "the caller")                               \
    }
#define FLAG(key_, member, about_, otherwise_)                                                               \
    {                                                                                                        \
        .key = (key_), .type = PARAM_BOOL, .offset = AT(member), PARAM_DOC(about_, otherwise_)               \
    }
#define PARENTS FLAG("parents", how.parents, "Make the directories that lead there", "false")
#define FOLLOW FLAG("follow", how.follow, "Where it is a link: what it leads to", "true")
#define SUM FLAG("sha256", bytes.sha256, "Also the sha256 of all of it", "false")
#define OVERWRITE FLAG("overwrite", how.overwrite, "Replace a file that is there", "false")
#define ENCODING                                                                                             \
    {                                                                                                        \
        .key = "encoding", .type = PARAM_NAME, .offset = AT(bytes.encoding),                                 \
        PARAM_DOC("Of data: base64, " ENCODING_NAMES, "utf-8")                                               \
    }
#define MODE(required_, otherwise_)                                                                          \
    {                                                                                                        \
        .key = "mode", .type = PARAM_INT, .offset = AT(how.mode), .required = (required_), .max = MODE_MAX,  \
        PARAM_DOC("Its permission bits, as a decimal number (0644 is 420)", otherwise_)                      \
    }

static const struct param read_params[] = {
    PATH("The file"),
    {.key = "offset",
     .type = PARAM_INT,
     .offset = AT(bytes.offset),
     .max = PARAM_MAX,
     PARAM_DOC("The first byte", "0")},
    {.key = "length",
     .type = PARAM_INT,
     .offset = AT(bytes.length),
     .max = LENGTH_MAX,
     PARAM_DOC("How many bytes at most", "1048576")},
    ENCODING,
    SUM,
    USER,
};
static const struct param write_params[] = {
    PATH("The file"),
    {.key = "data",
     .type = PARAM_TEXT,
     .offset = AT(bytes.data),
     .required = true,
     PARAM_DOC("Its content, or a part of it", NULL)},
    ENCODING,
    {.key = "offset",
     .type = PARAM_INT,
     .offset = AT(bytes.offset),
     .max = PARAM_MAX,
     PARAM_DOC("Write there, and leave the rest as it is", "the whole content is replaced, at once")},
    FLAG("append", bytes.append, "Write behind what is there", "false"),
    MODE(false, "as it was; of a new file by the umask"),
    {.key = "owner",
     .type = PARAM_NAME,
     .offset = AT(how.owner),
     PARAM_DOC("Whose it is to be, as of file_chown", "as it was; a new file is its writer's")},
    PARENTS,
    FLAG("exclusive", how.exclusive, "Make it; one that is there is an error", "false"),
    {.key = "if_sha256",
     .type = PARAM_NAME,
     .offset = AT(bytes.if_sha256),
     PARAM_DOC("Only where what is there has this sha256, in lower-case hexadecimal digits", "in any case")},
    USER,
};
static const struct param stat_params[] = {PATH("What is asked about"), FOLLOW, SUM, USER};
static const struct param list_params[] = {
    PATH("The directory"),
    {.key = "depth",
     .type = PARAM_INT,
     .offset = AT(page.depth),
     .min = 1,
     .max = DEPTH_MAX,
     PARAM_DOC("How many levels", "1")},
    {.key = "glob",
     .type = PARAM_NAME,
     .offset = AT(page.glob),
     PARAM_DOC("Only paths, from the directory on, that match: *, ?, **, [a-z], {a,b}", "all")},
    FLAG("hidden", page.hidden, "Also names that begin with a dot", "true"),
    {.key = "limit",
     .type = PARAM_INT,
     .offset = AT(page.limit),
     .min = 1,
     .max = LIMIT_MAX,
     PARAM_DOC("How many entries at most", "1000")},
    {.key = "sort",
     .type = PARAM_NAME,
     .offset = AT(page.sort),
     PARAM_DOC("name (of bytes), size (the largest first) or mtime (the newest first)", "name")},
    {.key = "after",
     .type = PARAM_NAME,
     .offset = AT(page.after),
     PARAM_DOC("Go on behind this path: `next` of the answer before", "from the first one")},
    USER,
};
static const struct param make_dir_params[] = {PATH("The directory"), PARENTS,
                                               MODE(false, "0777 as the umask allows"), USER};
static const struct param remove_params[] = {
    PATH("What is removed; of a link the link itself"),
    FLAG("recursive", how.recursive, "A directory with all that is in it", "false"), USER};
static const struct param move_params[] = {PATH("What is moved"), TO("Its new path"), OVERWRITE, USER};
static const struct param copy_params[] = {
    PATH("What is copied"), TO("The path of the copy"), OVERWRITE,
    FLAG("recursive", how.recursive, "A directory with all that is in it", "false"), USER};
static const struct param link_params[] = {
    PATH("The link to make"), TO("What it leads to"),
    FLAG("hard", how.hard, "Another name of the same file", "false: a symbolic link"), USER};
static const struct param chmod_params[] = {PATH("The file"), MODE(true, NULL), USER};
static const struct param chown_params[] = {
    PATH("The file"),
    {.key = "owner",
     .type = PARAM_NAME,
     .offset = AT(how.owner),
     PARAM_DOC("Whose it is to be, by names or numbers: user, user:group or :group", "as it is")},
    {.key = "gid",
     .type = PARAM_INT,
     .offset = AT(how.gid),
     .max = 4294967294.0,
     PARAM_DOC("The number of its group", "as it is")},
    FOLLOW,
    USER,
};
static const struct param touch_params[] = {
    PATH("The file; made where it is missing"),
    {.key = "mtime",
     .type = PARAM_NUMBER,
     .offset = AT(how.mtime),
     .max = 1e12,
     PARAM_DOC("When it was changed, seconds since 1970", "now")},
    USER,
};
static const struct param path_params[] = {PATH("A path there"), USER};

#define SEEK_START                                                                                           \
    {                                                                                                        \
        .key = "path", .type = PARAM_NAME, .offset = AT(path),                                               \
        PARAM_DOC("Where to begin", "where toolbox runs")                                                    \
    }
#define SEEK_LEFT_OUT                                                                                        \
    FLAG("hidden", seek.hidden, "Also names that begin with a dot", "false"),                                \
        FLAG("ignore", seek.ignores, "Leave out what .gitignore and .ignore there say, and .git", "true"),   \
    {                                                                                                        \
        .key = "exclude", .type = PARAM_NAMES, .offset = AT(seek.exclude),                                   \
        PARAM_DOC("Patterns as of glob: of names, or with a slash of paths", "none")                         \
    }
#define SEEK_ENDS(limit_)                                                                                    \
    {.key = "limit",                                                                                         \
     .type = PARAM_INT,                                                                                      \
     .offset = AT(seek.limit),                                                                               \
     .min = 1,                                                                                               \
     .max = LIMIT_MAX,                                                                                       \
     PARAM_DOC("How many at most", limit_)},                                                                 \
        {.key = "timeout",                                                                                   \
         .type = PARAM_NUMBER,                                                                               \
         .offset = AT(seek.timeout),                                                                         \
         .max = SEEK_MAX_S,                                                                                  \
         PARAM_DOC("How many seconds at most", "10")},                                                       \
        USER
#define SEEK_NUMBER(key_, type_, member, max_, about_)                                                       \
    {                                                                                                        \
        .key = (key_), .type = (type_), .offset = AT(member), .max = (max_), PARAM_DOC(about_, NULL)         \
    }
static const struct param find_params[] = {
    SEEK_START,
    {.key = "pattern",
     .type = PARAM_NAME,
     .offset = AT(seek.pattern),
     PARAM_DOC("A glob, for names anywhere below, or with a slash for paths from there on: src/**/*.c", "*")},
    {.key = "type",
     .type = PARAM_NAME,
     .offset = AT(seek.type),
     PARAM_DOC("Only what is a file, directory, symlink or other", "all")},
    SEEK_NUMBER("min_size", PARAM_INT, seek.min_size, PARAM_MAX, "Only files of so many bytes at least"),
    SEEK_NUMBER("max_size", PARAM_INT, seek.max_size, PARAM_MAX, "Only files of so many bytes at most"),
    SEEK_NUMBER("newer", PARAM_NUMBER, seek.newer, 1e12, "Only what was changed later, seconds since 1970"),
    SEEK_NUMBER("older", PARAM_NUMBER, seek.older, 1e12, "Only what was changed before that"),
    SEEK_LEFT_OUT,
    SEEK_ENDS("1000"),
};
static const struct param search_params[] = {
    SEEK_START,
    {.key = "pattern",
     .type = PARAM_NAME,
     .offset = AT(seek.pattern),
     .required = true,
     PARAM_DOC("A regular expression (POSIX extended, and \\w \\d \\s \\b) for single lines", NULL)},
    FLAG("literal", seek.literal, "The pattern is a text", "false"),
    FLAG("ignore_case", seek.ignore_case, "Large and small letters are the same", "false"),
    FLAG("multiline", seek.multiline, "A match may go over several lines; \\n is a line end, and . none",
         "false"),
    FLAG("count", seek.counts, "How many lines match in each file, rather than which", "false"),
    {.key = "glob",
     .type = PARAM_NAME,
     .offset = AT(seek.glob),
     PARAM_DOC("Only files like that, as the pattern of file_find", "all")},
    {.key = "context",
     .type = PARAM_INT,
     .offset = AT(seek.context),
     .max = CONTEXT_MAX,
     PARAM_DOC("Lines to give around each match", "0")},
    SEEK_LEFT_OUT,
    SEEK_ENDS("200"),
};

#define TABLE(name) static const struct params_table name##_table = PARAMS_TABLE(name##_params)
TABLE(read);
TABLE(write);
TABLE(stat);
TABLE(list);
TABLE(make_dir);
TABLE(remove);
TABLE(move);
TABLE(copy);
TABLE(link);
TABLE(chmod);
TABLE(chown);
TABLE(touch);
TABLE(path);
TABLE(find);
TABLE(search);

static const struct file_request usual = {
    .bytes = {.offset = -1, .length = 1 << 20},
    .how = {.mode = -1, .gid = -1, .mtime = -1, .follow = true},
    .page = {.depth = 1, .limit = 1000, .hidden = true},
    .seek = {.limit = -1,
             .min_size = -1,
             .max_size = -1,
             .newer = -1,
             .older = -1,
             .ignores = true,
             .timeout = 10},
};

static bool is_of(const char *const *words, size_t n, const struct text *given)
{
    bool is = !given->s;
    for (size_t i = 0; !is && i < n; i++)
        is = strcmp(given->s, words[i]) == 0;
    return is;
}

static int check(const struct file_request *r, struct err *err)
{
    static const char *const sorts[] = {"name", "size", "mtime"};
    static const char *const types[] = {"file", "directory", "symlink", "other"};
    const struct text *encoding = &r->bytes.encoding;
    if (encoding->s && strcmp(encoding->s, "base64") != 0 && !encoding_is(encoding))
        return err_set(err, ERR_PARAMS, "Invalid parameters: encoding: must be base64, " ENCODING_NAMES);
    if (!is_of(sorts, sizeof sorts / sizeof *sorts, &r->page.sort))
        return err_set(err, ERR_PARAMS, "Invalid parameters: sort: must be name, size or mtime");
    if (!is_of(types, sizeof types / sizeof *types, &r->seek.type))
        return err_set(err, ERR_PARAMS,
                       "Invalid parameters: type: must be file, directory, symlink or other");
    if ((r->bytes.append || r->bytes.offset >= 0) && r->bytes.data.s && r->bytes.if_sha256.s)
        return err_set(err, ERR_PARAMS, "Invalid parameters: if_sha256: goes with a whole content alone");
    return 0;
}

/* The default of a text can stand in no table. */
static void take_defaults(struct file_request *r, file_work *work)
{
    if (work == file_find && !r->seek.pattern.s)
        r->seek.pattern = (struct text){mem_strdup("*"), 1};
    if (r->seek.limit < 0)
        r->seek.limit = work == file_find ? 1000 : 200;
}

static void run(struct rpc_call *call, struct span params, const struct params_table *table, file_work *work)
{
    struct file_request r = usual;
    struct work_user user WORK_USER_AUTO = {0};
    struct buf answer BUF_AUTO = BUF_INIT;
    struct err err;
    if (params_unpack(table, params, &r, &err) < 0) {
        rpc_fail(call, &err);
        return;
    }
    take_defaults(&r, work);
    const char *kind = NULL; /* of what failed before the work, or around it */
    bool whole = work == file_read || work == file_stat;
    int rc = check(&r, &err) < 0 || (!whole && code_unpack(CODE_file, &err) < 0) ? -1 : 0;
    if (rc == 0 && work_user_take(&user, &r.user, &err) < 0) {
        kind = user.user.home ? "permission" : FILE_NO_USER;
        rc = -1;
    } else if (rc == 0) {
        kind = user.given && geteuid() != 0 ? "permission" : "other";
        rc = work_as_user(&user, work, &r, &answer, &err);
    }
    params_release(table, &r);
    if (rc == 0)
        rpc_result(call, span_of(&answer));
    else
        rpc_fail_kind(call, &err, answer.len > 0 ? buf_str(&answer) : err.code == ERR_TOOL ? kind : NULL);
}

#define METHOD(name, table)                                                                                  \
    static void call_##name(struct rpc_call *call, struct span params, void *ctx)                            \
    {                                                                                                        \
        (void)ctx;                                                                                           \
        run(call, params, &table##_table, file_##name);                                                      \
    }
METHOD(read, read)
METHOD(write, write)
METHOD(stat, stat)
METHOD(list, list)
METHOD(make_dir, make_dir)
METHOD(remove, remove)
METHOD(move, move)
METHOD(copy, copy)
METHOD(link, link)
METHOD(chmod, chmod)
METHOD(chown, chown)
METHOD(touch, touch)
METHOD(disk_usage, path)
METHOD(space, path)
METHOD(find, find)
METHOD(search, search)

#define FACTS "type, size, mode, mtime, uid, gid, user, group, links, inode, disk_bytes, target?"
#define ENTRY(name, table, about, result)                                                                    \
    {                                                                                                        \
        "file_" #name, call_##name, &table##_table, DOC(about), DOC(result),                                 \
            DOC("it can't be done; data.kind says why"), NULL, NULL                                          \
    }
const struct rpc_method file_methods[] = {
    ENTRY(read, read, "Read a file, or a part of it", "{data, offset, length, end, sha256?, " FACTS "}"),
    ENTRY(write, write, "Write a file: whole and at once, or a part of it",
          "{written, created, atomic, " FACTS "}"),
    ENTRY(stat, stat, "What is known of a file, directory or link", "{" FACTS ", sha256?}"),
    ENTRY(list, list, "What is in a directory, in the order of bytes",
          "{entries, next?, incomplete}; an entry has path, " FACTS),
    ENTRY(make_dir, make_dir, "Make a directory", "null"),
    ENTRY(remove, remove, "Remove a file, a link or a directory", "null"),
    ENTRY(move, move, "Move or rename within a file system", "null"),
    ENTRY(copy, copy, "Copy a file, or a tree with its links, modes and times", "{files, bytes}"),
    ENTRY(link, link, "Make a link", "null"),
    ENTRY(chmod, chmod, "Set permission bits", "null"),
    ENTRY(chown, chown, "Set owner and group", "null"),
    ENTRY(touch, touch, "Set the time of change", "null"),
    ENTRY(disk_usage, path, "How much lies there, with all that is below it",
          "{entries, bytes, disk_bytes, incomplete}"),
    ENTRY(space, path, "What its file system has",
          "{total_bytes, free_bytes, available_bytes, total_inodes, free_inodes, read_only}"),
    ENTRY(find, find, "Find what has such a name, kind, size or time, sorted by path",
          "{paths, truncated, timed_out, unreadable_directories}"),
    ENTRY(search, search, "Find lines in text files",
          "{matches, files_searched, files_binary, files_too_large, unreadable, truncated, timed_out}; a "
          "match has path, "
          "line, text, line_cut?, before?, after?, or path, count"),
    {0},
};

static const struct rpc_method server_methods[] = {
    {"file_watch", file_watch, &watch_params_table,
     DOC("What changes in a tree, as it changes, over a stream each time as an event"),
     DOC("{cursor, changes, ended, incomplete}; a change has path, change (created, changed, deleted, "
         "overflow, "
         "dropped), directory"),
     DOC("it can't be watched, the cursor is of no watch; data.kind says why"), NULL, NULL},
    {0},
};
static const char *const queries[] = {"file_watch", NULL};

const struct tool file_tool = {.in_process = file_methods, .server = server_methods, .queries = queries};
