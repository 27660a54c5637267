#include "bash_session_cast.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "applet.h"
#include "commands/exec/command_print.h"
#include "duration.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "term_filter.h"

#ifndef TOOLBOX_GUEST

void put_record_path(struct buf *params, const char *key, const char *path)
{
    char here[4096];
    if (*path == '/' || !getcwd(here, sizeof here)) {
        json_member_string(params, key, path);
        return;
    }
    char *whole MEM_AUTO = mem_printf("%s/%s", here, path);
    json_member_string(params, key, whole);
}

/* ---- events ---- */

/* How they are shown: as the terminal had it, as plain text, or each as a line of JSON. */
struct viewer {
    const struct command_line *c;
    bool text, json;
    struct term_filter filter;
};

static struct viewer viewer_of(const struct command_line *c)
{
    return (struct viewer){.c = c, .text = command_value(c, "text"), .json = command_value(c, "json")};
}

/* Carriage returns in front of newlines are the terminal's, not the text's. */
static void drop_returns(struct buf *text)
{
    size_t len = 0;
    for (size_t i = 0; i < text->len; i++)
        if (text->data[i] != '\r' || i + 1 == text->len || text->data[i + 1] != '\n')
            text->data[len++] = text->data[i];
    buf_truncate(text, len);
}

/* The members of one: its time (text), kind and data. False: it is none. */
static bool read_event(struct span event, struct span part[3])
{
    size_t at = 0, n = 0;
    if (json_kind(event) != JSON_ARRAY)
        return false;
    while (n < 3 && json_element(event, &at, &part[n]))
        n++;
    return n == 3 && json_kind(part[0]) == JSON_NUMBER && json_kind(part[1]) == JSON_STRING &&
           json_kind(part[2]) == JSON_STRING;
}

static int show(struct viewer *v, struct span event, const struct span part[3])
{
    struct buf data BUF_AUTO = BUF_INIT, text BUF_AUTO = BUF_INIT;
    if (v->json)
        return command_print_line(v->c, event);
    if (!json_string_is(part[1], "o") || !json_string_text(part[2], &data))
        return EXIT_OK;
    if (!v->text)
        return command_print(v->c, span_of(&data));
    term_filter_feed(&v->filter, buf_str(&data), data.len, &text);
    drop_returns(&text);
    return command_print(v->c, span_of(&text));
}

/* ---- live ---- */

/* False: that was the last. */
static bool show_view(struct viewer *v, struct span result, struct buf *cursor, int *status)
{
    static const char *const names[] = {"cursor", "events", "ended"};
    struct span found[3], event, part[3];
    int count[3];
    json_members(result, names, 3, found, count);
    if (!found[0].s || !found[1].s)
        return false;
    for (size_t at = 0; *status == EXIT_OK && json_element(found[1], &at, &event);)
        if (read_event(event, part))
            *status = show(v, event, part);
    buf_truncate(cursor, 0);
    buf_add(cursor, found[0].s, found[0].n);
    return *status == EXIT_OK && !found[2].s;
}

int bash_session_watch(const struct command_line *c)
{
    struct buf cursor BUF_AUTO = BUF_INIT;
    struct viewer v = viewer_of(c);
    for (int status = EXIT_OK;;) {
        struct buf params BUF_AUTO = BUF_INIT, result BUF_AUTO = BUF_INIT;
        buf_addc(&params, '{');
        json_member_string(&params, "session_name", c->words[0]);
        if (cursor.len > 0)
            buf_addf(&params, ",\"cursor\":%s", cursor.data);
        status = command_call(c, "bash_session_watch", &params, &result);
        if (status != EXIT_OK || !show_view(&v, span_of(&result), &cursor, &status))
            return status;
    }
}

/* ---- a recording ---- */

int bash_session_record(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT, result BUF_AUTO = BUF_INIT, path BUF_AUTO = BUF_INIT;
    struct span value;
    buf_addc(&params, '{');
    json_member_string(&params, "session_name", c->words[0]);
    if (c->n_words > 1)
        put_record_path(&params, "path", c->words[1]);
    if (command_value(c, "v3"))
        json_member_int(&params, "version", 3);
    if (command_value(c, "stop"))
        json_member_bool(&params, "stop", true);
    int status = command_put_number(c, "max", &params, "max_bytes");
    if (status == EXIT_OK)
        status = command_call(c, "bash_session_record", &params, &result);
    if (status != EXIT_OK)
        return status;
    if (command_value(c, "json"))
        return command_print_line(c, span_of(&result));
    if (json_member(span_of(&result), "failure", &value, NULL) && json_string_text(value, &path))
        return applet_failed(c->applet->name, "the recording has ended before: %s", buf_str(&path));
    if (json_member(span_of(&result), "path", &value, NULL))
        json_string_text(value, &path);
    return command_print_line(c, span_of(&path));
}

static void rest(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    nanosleep(&t, NULL);
}

struct replay {
    struct viewer viewer;
    double speed, longest, now; /* longest pause; < 0: as long as it was */
    bool counts_from_last;      /* times do */
};

static int play(struct replay *r, struct span event)
{
    struct span part[3];
    if (json_check(event, NULL) < 0 || !read_event(event, part))
        return EXIT_OK; /* a comment, or half of a line at the end */
    double time = strtod(part[0].s, NULL), pause = r->counts_from_last ? time : time - r->now;
    r->now = time;
    if (r->longest >= 0 && pause > r->longest)
        pause = r->longest;
    if (!r->viewer.text && !r->viewer.json && pause > 0)
        rest(pause / r->speed);
    return show(&r->viewer, event, part);
}

static int take_speed(const struct command_line *c, struct replay *r)
{
    const char *speed = command_value(c, "speed"), *idle = command_value(c, "idle");
    char *end;
    r->speed = 1;
    r->longest = -1;
    if (speed && ((r->speed = strtod(speed, &end)) <= 0 || *end || r->speed > 1e6))
        return usage_error(c->applet->name, "--speed takes a factor above 0, not '%s'", speed);
    if (idle && !duration_read(idle, &r->longest))
        return usage_error(c->applet->name, "--idle takes a time, not '%s'", idle);
    return EXIT_OK;
}

/* Of asciicast 2 or 3; -1: of neither. */
static int version_of(struct span head)
{
    struct span version;
    if (json_check(head, NULL) < 0 || json_kind(head) != JSON_OBJECT ||
        !json_member(head, "version", &version, NULL))
        return -1;
    return span_is(version, "2") ? 2 : span_is(version, "3") ? 3 : -1;
}

int bash_session_replay(const struct command_line *c)
{
    struct buf file BUF_AUTO = BUF_INIT;
    struct replay r = {.viewer = viewer_of(c)};
    int status = take_speed(c, &r), version = 0;
    if (status != EXIT_OK)
        return status;
    if (io_read_file(AT_FDCWD, c->words[0], &file) < 0)
        return applet_failed(c->applet->name, "%s: %s", c->words[0], err_text(errno));
    for (size_t at = 0; at < file.len && status == EXIT_OK;) {
        char *line = file.data + at, *end = memchr(line, '\n', file.len - at);
        struct span text = {line, end ? (size_t)(end - line) : file.len - at};
        at += text.n + 1;
        if (version == 0)
            version = version_of(text);
        else
            status = play(&r, text);
        if (version < 0)
            return applet_failed(c->applet->name, "%s is no recording (asciicast 2 or 3)", c->words[0]);
        r.counts_from_last = version == 3;
    }
    return status;
}

#endif
