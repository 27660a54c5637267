#include "bash_session_call.h"

#include <errno.h>
#include <stdlib.h>

#include "applet.h"
#include "commands/exec/command_print.h"

void session_call_begin(const struct command_line *c, struct buf *params)
{
    buf_addc(params, '{');
    json_member_string(params, "session_name", c->words[0]);
}

int session_print(const struct command_line *c, const struct buf *result, const char *member, bool line)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct span value = span_of(result);
    if (command_value(c, "json"))
        return command_print_line(c, value);
    if (!member || json_member(value, member, &value, NULL))
        json_string_text(value, &text);
    if (text.len > 0 && line)
        buf_addc(&text, '\n');
    return command_print(c, span_of(&text));
}

/* ---- --max: how many bytes are to be shown ---- */

int session_take_max(const struct command_line *c, long long *max)
{
    const char *word = command_value(c, "max");
    char *end;
    errno = 0;
    *max = word ? strtoll(word, &end, 10) : 0;
    if (word && (end == word || *end || errno || *max < 0))
        return usage_error(c->applet->name, "--max takes a number of bytes, not '%s'", word);
    return EXIT_OK;
}

int session_print_cut(const struct command_line *c, struct span text, struct cut *cut)
{
    struct buf all BUF_AUTO = BUF_INIT;
    struct buf shown BUF_AUTO = BUF_INIT;
    json_string_text(text, &all);
    cut_feed(cut, buf_str(&all), all.len, &shown);
    return command_print(c, span_of(&shown));
}

int session_print_end(const struct command_line *c, struct cut *cut)
{
    struct buf shown BUF_AUTO = BUF_INIT;
    cut_end(cut, &shown);
    return command_print(c, span_of(&shown));
}

/* With --json the answer itself is cut, and says so. */
void session_put_max(const struct command_line *c, long long max, struct buf *params)
{
    if (max > 0 && command_value(c, "json"))
        json_member_int(params, "max_output_bytes", max);
}
