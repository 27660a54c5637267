#include "words.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "applet.h"
#include "duration.h"
#include "err.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "memory_share.h"
#include "utf8.h"

#define TEXT_MAX (128u << 20)

/* To the end. How much memory there is, is looked at for what is long alone: that takes longer than all else
 * that a call does. */
static int read_shared(int fd, struct buf *text)
{
    struct memory_share share = {0};
    ssize_t n = 1;
    while (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN))) {
        if (n < 0 && errno == EAGAIN)
            poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
        text->max = memory_share(&share, text->len, TEXT_MAX);
        n = io_read_more(fd, text);
    }
    return (int)n;
}

int words_file(const char *applet, const char *path, struct buf *text)
{
    bool from_stdin = strcmp(path, "-") == 0;
    int file FD_AUTO = from_stdin ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if ((from_stdin || file >= 0) && read_shared(from_stdin ? STDIN_FILENO : file, text) == 0)
        return EXIT_OK;
    if (errno == EFBIG && text->max < TEXT_MAX)
        return applet_failed(applet, "cannot read %s: it is longer than a tenth of the free memory, %zu KiB",
                             from_stdin ? "stdin" : path, text->max >> 10);
    if (errno == EFBIG)
        return applet_failed(applet, "cannot read %s: it is longer than 128 MiB",
                             from_stdin ? "stdin" : path);
    return applet_failed(applet, "cannot read %s: %s", from_stdin ? "stdin" : path, err_text(errno));
}

int words_text(const char *applet, const char *word, struct buf *text)
{
    if (strcmp(word, "-") == 0)
        return words_file(applet, word, text);
    buf_adds(text, word);
    return EXIT_OK;
}

static int put_json(const char *applet, const char *what, const struct buf *text, struct buf *params)
{
    struct err err;
    if (json_check(span_of(text), &err) < 0)
        return usage_error(applet, "%s: %s", what, err.msg);
    json_compact(params, span_of(text));
    return EXIT_OK;
}

/* All of them together: each file alone is held to it by words_file. */
static int check_size(const char *applet, const struct buf *params)
{
    struct memory_share share = {0};
    size_t most = memory_share(&share, params->len, TEXT_MAX);
    return params->len <= most
               ? EXIT_OK
               : applet_failed(applet, "the params are longer than %s: %zu KiB are possible",
                               most < TEXT_MAX ? "a tenth of the free memory" : "128 MiB", most >> 10);
}

/* key=value and its like: one member. */
static int put_member(const char *applet, const char *word, struct buf *params)
{
    const char *equals = strchr(word, '=');
    bool is_json = equals && equals > word && equals[-1] == ':';
    size_t n = equals ? (size_t)(equals - word) - is_json : 0;
    struct buf text BUF_AUTO = BUF_INIT;
    if (n == 0)
        return usage_error(applet, "'%s' is no key=value, no key:=JSON and no JSON", word);
    char *key MEM_AUTO = mem_dup(word, n);
    int status = EXIT_OK;
    if (equals[1] == '@')
        status = words_file(applet, equals + 2, &text);
    else
        buf_adds(&text, equals + 1);
    if (status == EXIT_OK && (!utf8_is_valid(buf_str(&text), text.len) || !utf8_is_valid(key, n)))
        status = usage_error(applet, "%s: not UTF-8, which no JSON can hold", key);
    if (status != EXIT_OK)
        return status;
    if (!is_json) {
        json_member_text(params, key, buf_str(&text), text.len);
        return EXIT_OK;
    }
    json_key(params, key);
    return put_json(applet, key, &text, params);
}

static bool is_whole(const char *word)
{
    return strcmp(word, "-") == 0 || (*word && strchr("@{[\"", *word));
}

int words_params(const char *applet, char *const *words, int n, struct buf *params)
{
    struct buf text BUF_AUTO = BUF_INIT;
    int status = EXIT_OK, stdins = 0;
    for (int i = 0; i < n; i++) {
        const char *equals = strchr(words[i], '=');
        stdins += equals && strcmp(equals, "=@-") == 0;
        if (n > 1 && is_whole(words[i]))
            return usage_error(applet, "'%.20s' is all params by itself; no other word goes with it",
                               words[i]);
    }
    if (stdins > 1)
        return usage_error(applet, "stdin can be read for one param only");
    if (n == 1 && is_whole(words[0])) {
        status = strchr("@-", *words[0]) ? words_file(applet, words[0] + (*words[0] == '@'), &text)
                                         : words_text(applet, words[0], &text);
        return status == EXIT_OK ? put_json(applet, "the params", &text, params) : status;
    }
    buf_addc(params, '{');
    for (int i = 0; i < n && status == EXIT_OK; i++) {
        status = put_member(applet, words[i], params);
        if (status == EXIT_OK)
            status = check_size(applet, params);
    }
    buf_addc(params, '}');
    return status;
}

int words_seconds(const char *applet, const char *option, const char *word, double min, double max,
                  double *seconds)
{
    if (!duration_read(word, seconds))
        return usage_error(applet, "%s takes a time such as 5, 5s, 500ms, 2m or 1h, not '%s'", option, word);
    if (*seconds < min || *seconds > max)
        return usage_error(applet, "%s takes a time from %g to %g seconds, not '%s'", option, min, max, word);
    return EXIT_OK;
}
