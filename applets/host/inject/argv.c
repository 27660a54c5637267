#include "host/inject/argv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"

#define DIGITS 16

void argv_take(struct argv *a, char *word)
{
    a->words = mem_realloc(a->words, (a->n + 2) * sizeof *a->words);
    a->words[a->n++] = word;
    a->words[a->n] = NULL;
}

void argv_add(struct argv *a, const char *word)
{
    argv_take(a, mem_strdup(word));
}

void argv_release(struct argv *a)
{
    for (size_t i = 0; i < a->n; i++)
        free(a->words[i]);
    free(a->words);
    *a = (struct argv){0};
}

void argv_freshen(char *const *words)
{
    static unsigned before;
    const size_t fixed = sizeof ARGV_FRESH - 1 - DIGITS;
    for (; *words; words++)
        if (strlen(*words) == fixed + DIGITS && strncmp(*words, ARGV_FRESH, fixed) == 0) {
            unsigned now = (unsigned)now_ms();
            before = now > before ? now : before + 1;
            snprintf(*words + fixed, DIGITS + 1, "%08x%08x", (unsigned)getpid(), before);
            return;
        }
}

/* Reads one word; returns what is behind it, NULL when a quote is not closed. */
static const char *split_word(const char *at, struct buf *word)
{
    char quote = '\0';
    for (; *at && (quote || !strchr(" \t\n", *at)); at++) {
        if (!quote && (*at == '\'' || *at == '"')) {
            quote = *at;
        } else if (*at == quote) {
            quote = '\0';
        } else {
            if (*at == '\\' && at[1] && (!quote || (quote == '"' && strchr("\\\"$`", at[1]))))
                at++;
            buf_addc(word, *at);
        }
    }
    return quote ? NULL : at;
}

int argv_split(struct argv *a, const char *text, struct err *err)
{
    for (const char *at = text + strspn(text, " \t\n"); *at; at += strspn(at, " \t\n")) {
        struct buf word BUF_AUTO = BUF_INIT;
        at = split_word(at, &word);
        if (!at)
            return err_set(err, ERR_PARAMS, "a quote is not closed in: %s", text);
        argv_add(a, buf_str(&word));
    }
    return 0;
}

void argv_quote(struct buf *out, const char *word)
{
    buf_addc(out, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            buf_adds(out, "'\\''");
        else
            buf_addc(out, *word);
    }
    buf_addc(out, '\'');
}
