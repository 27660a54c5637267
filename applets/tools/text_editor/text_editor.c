/* The command line of the editor. */
#include "text_editor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "commands/exec/command_print.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "relocate.h"
#include "edit_encoding.h"
#include "text_editor_controller.h"

/* What is inserted is lines, and the last one's end is the last line's own. */
static void drop_last_newline(struct buf *content)
{
    bool ends = content->len > 0 && content->data[content->len - 1] == '\n';
    bool crlf = ends && content->len > 1 && content->data[content->len - 2] == '\r';
    buf_truncate(content, content->len - (size_t)ends - (size_t)crlf);
}

static int read_text(const struct command_line *c, const char *file, struct text *text)
{
    struct buf content BUF_AUTO = BUF_INIT;
    bool from_stdin = strcmp(file, "-") == 0;
    if ((from_stdin ? io_read_all(STDIN_FILENO, &content) : io_read_file(AT_FDCWD, file, &content)) < 0)
        return applet_failed(c->applet->name, "%s: %s", from_stdin ? "standard input" : file,
                             err_text(errno));
    if (strcmp(c->command->name, "insert") == 0)
        drop_last_newline(&content);
    text->s = buf_take(&content, &text->n);
    return EXIT_OK;
}

/* The text that one of two options gives, or, where neither is there, the file `otherwise` (NULL: none). */
static int take_text(const struct command_line *c, const char *option, const char *file_option,
                     const char *otherwise, struct text *text)
{
    const char *word = command_value(c, option), *file = command_value(c, file_option);
    if (word && file)
        return usage_error(c->applet->name, "--%s and --%s are two ways to say one thing", option,
                           file_option);
    if (word)
        *text = (struct text){mem_strdup(word), strlen(word)};
    else if (file || otherwise)
        return read_text(c, file ? file : otherwise, text);
    return EXIT_OK;
}

static int take_number(const char *s, const char **end, long long *value)
{
    char *stop;
    errno = 0;
    *value = strtoll(s, &stop, 10);
    *end = stop;
    return stop == s || errno != 0 ? -1 : 0;
}

static void put_json(struct buf *out, const struct buf *answer, const struct err *err)
{
    buf_addc(out, '{');
    if (err) {
        json_key(out, "error");
        buf_addc(out, '{');
        json_member_int(out, "code", err->code);
        json_member_string(out, "message", err->msg);
        buf_addc(out, '}');
    } else {
        json_member_text(out, "result", buf_str(answer), answer->len);
    }
    buf_adds(out, "}\n");
}

static bool is_numbered(const char *line)
{
    line += strspn(line, " ");
    size_t digits = strspn(line, "0123456789");
    return digits > 0 && line[digits] == '\t';
}

/* What is said about the file, not what stands in it. */
static void put_reworded(const struct command_line *c, const struct buf *answer, struct buf *out)
{
    for (size_t at = 0, n; at < answer->len; at += n) {
        const char *line = answer->data + at, *end = memchr(line, '\n', answer->len - at);
        struct buf text BUF_AUTO = BUF_INIT;
        n = end ? (size_t)(end - line) + 1 : answer->len - at;
        buf_add(&text, line, n);
        if (!is_numbered(line))
            command_reword(c, &text);
        buf_add(out, text.data, text.len);
    }
}

static int edit(const struct command_line *c, struct edit_request *request, enum edit_command command)
{
    struct buf answer BUF_AUTO = BUF_INIT;
    struct buf out BUF_AUTO = BUF_INIT;
    struct err err;
    bool json = command_value(c, "json");
    request->command = command;
    const char *encoding = command_value(c, "encoding");
    if (encoding)
        request->encoding = (struct text){(char *)(uintptr_t)encoding, strlen(encoding)};
    if (encoding && !encoding_is(&request->encoding))
        return usage_error(c->applet->name, "--encoding wants " ENCODING_NAMES ", not '%s'", encoding);
    if (c->n_words > 0)
        request->path = (struct text){c->words[0], strlen(c->words[0])};
    int rc = code_unpack(CODE_edit, &err) < 0 ? -1 : text_editor_run(request, &answer, &err);
    if (rc < 0 && !json)
        return command_failed(c, &err);
    if (json)
        put_json(&out, &answer, rc < 0 ? &err : NULL);
    else
        put_reworded(c, &answer, &out);
    int status = command_print(c, span_of(&out));
    return rc < 0 ? EXIT_FAILED : status;
}

/* ---- commands ---- */

static int do_view(const struct command_line *c)
{
    long long range[2];
    struct edit_request r = {0};
    const char *word = command_value(c, "range"), *end;
    if (word && (take_number(word, &end, &range[0]) < 0 || *end != ',' ||
                 take_number(end + 1, &end, &range[1]) < 0 || *end != '\0'))
        return usage_error(c->applet->name, "--range wants FIRST,LAST, two line numbers");
    if (word)
        r.view_range = (struct ints){.list = range, .n = 2, .set = true};
    return edit(c, &r, EDIT_VIEW);
}

static int do_create(const struct command_line *c)
{
    struct edit_request r = {0};
    r.overwrite = command_value(c, "overwrite");
    r.parents = command_value(c, "parents");
    int status = take_text(c, "text", "file", "-", &r.file_text);
    if (status == EXIT_OK)
        status = edit(c, &r, EDIT_CREATE);
    free(r.file_text.s);
    return status;
}

static bool is_stdin(const struct command_line *c, const char *option)
{
    const char *file = command_value(c, option);
    return file && strcmp(file, "-") == 0;
}

static int do_replace(const struct command_line *c)
{
    struct edit_request r = {0};
    if (is_stdin(c, "old-file") && is_stdin(c, "new-file"))
        return usage_error(c->applet->name, "standard input can be only one of the texts");
    if (!command_value(c, "old") && !command_value(c, "old-file"))
        return usage_error(c->applet->name, "the old text is missing: --old TEXT or --old-file FILE");
    const char *count = command_value(c, "count"), *end;
    if (count && (take_number(count, &end, &r.expected_count) < 0 || *end != '\0' || r.expected_count < 1))
        return usage_error(c->applet->name, "--count wants a number from 1 on, not '%s'", count);
    r.replace_all = command_value(c, "all");
    int status = take_text(c, "old", "old-file", NULL, &r.old_str);
    if (status == EXIT_OK)
        status = take_text(c, "new", "new-file", NULL, &r.new_str);
    if (status == EXIT_OK)
        status = edit(c, &r, EDIT_STR_REPLACE);
    free(r.old_str.s);
    free(r.new_str.s);
    return status;
}

static int do_insert(const struct command_line *c)
{
    struct edit_request r = {0};
    const char *end;
    if (take_number(c->words[1], &end, &r.insert_line) < 0 || *end != '\0')
        return usage_error(c->applet->name, "LINE is a line number, not '%s'", c->words[1]);
    int status = take_text(c, "text", "file", "-", &r.new_str);
    if (status == EXIT_OK)
        status = edit(c, &r, EDIT_INSERT);
    free(r.new_str.s);
    return status;
}

static int do_patch(const struct command_line *c)
{
    struct edit_request r = {0};
    int status = take_text(c, "text", "file", "-", &r.patch);
    if (status == EXIT_OK)
        status = edit(c, &r, EDIT_PATCH);
    free(r.patch.s);
    return status;
}

static int do_undo(const struct command_line *c)
{
    return edit(c, &(struct edit_request){0}, EDIT_UNDO);
}

static int do_history(const struct command_line *c)
{
    return edit(c, &(struct edit_request){0}, EDIT_HISTORY);
}

/* ---- the table ---- */

static const struct command_option options[] = {
    {"range", "FIRST,LAST", "only these lines; LAST -1: to the end", 0},
    {"text", "TEXT", "the text", 0},
    {"file", "FILE", "the file that holds it; -: standard input, which is read where neither is given", 0},
    {"old", "TEXT", "what is replaced", 0},
    {"old-file", "FILE", "the file that holds it; -: standard input", 0},
    {"new", "TEXT", "what stands there then (nothing)", 0},
    {"new-file", "FILE", "the file that holds it; -: standard input", 0},
    {"all", NULL, "wherever it stands", 0},
    {"count", "N", "N places, and none where there are more or less", 0},
    {"overwrite", NULL, "also in the place of a file that is there", 0},
    {"parents", NULL, "make the directories that are missing", 0},
    {"encoding", "NAME", ENCODING_NAMES, 0},
    {"json", NULL, "the answer as {\"result\": TEXT} or {\"error\": {\"code\", \"message\"}}", 0},
    {0},
};

static const struct command list[] = {
    {"view", "PATH", "range encoding json",
     "show a file numbered as by `cat -n`, or a directory two levels deep", NULL, "/etc/passwd --range 1,5",
     1, 1, do_view, NULL},
    {"create", "PATH", "text file overwrite parents encoding json", "make a file that isn't there yet", NULL,
     "notes.txt --text 'first line'", 1, 1, do_create, NULL},
    {"replace", "PATH", "old old-file new new-file all count encoding json",
     "replace the one place where a text stands", NULL, "notes.txt --old first --new last", 1, 1, do_replace,
     NULL},
    {"insert", "PATH LINE", "text file encoding json",
     "put a text, as lines of its own, behind a line (0: in front of the first)",
     "Of a file's or stdin's text the last newline only ends the last line; any other at the end makes an "
     "empty line "
     "more.",
     "notes.txt 1 --text 'second line'", 2, 2, do_insert, NULL},
    {"patch", "[PATH]", "text file encoding json",
     "apply a unified diff, git's too, or a *** Begin Patch: all of it, or nothing",
     "PATH is the directory that the patch's names are taken from (ours), or the one file it is for.",
     "--file fix.diff", 0, 1, do_patch, NULL},
    {"undo", "PATH", "json", "take the last edit back", NULL, "notes.txt", 1, 1, do_undo, NULL},
    {"history", "PATH", "json", "list the edits that can be taken back, the last one first", NULL,
     "notes.txt", 1, 1, do_history, NULL},
    {0},
};

static const char *const words[][2] = {
    {"old_str was", "the old text was"},
    {"old_str occurs", "the old text occurs"},
    {"old_str does not", "the old text does not"},
    {"old_str is empty", "the old text is empty"},
    {"`replace_all`", "--all"},
    {"expected_count is", "--count says"},
    {"`overwrite`", "--overwrite"},
    {"`encoding`", "--encoding"},
    {"new_str as well", "in the new text as well"},
    {"`undo_edit`", "`undo`"},
    {"`str_replace`", "`replace`"},
    {"Invalid `insert_line`", "Invalid LINE"},
    {"Invalid `view_range`", "Invalid --range"},
    {"view_range [", "--range "},
    {", -1]]", ",-1]"},
    {0},
};

static const struct command_set commands = {
    .about = "Views and edits files, exactly: bytes outside the edit never change, a write is whole or not "
             "done, and "
             "the last ten edits of a file can be undone, whoever of this user made them.",
    .more = "Exit status: 0 done, 1 refused (nothing was changed), 2 usage.",
    .options = options,
    .list = list,
    .words = words,
    .packed = true,
};

const struct applet text_editor_applet = {
    .name = "text_editor",
    .summary = "view and edit files exactly, with undo",
    .commands = &commands,
};
