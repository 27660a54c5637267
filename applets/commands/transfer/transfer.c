#include "commands/transfer/transfer.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "relocate.h"

static const char NAME[] = "transfer";

enum { EXCLUDES_MAX = 64 };

static int take_letters(struct transfer_options *o, const char *letters)
{
    const struct {
        char letter;
        bool *set;
    } all[] = {{'a', &o->archive},   {'r', &o->recursive}, {'x', &o->exact},   {'d', &o->deletes},
               {'u', &o->differing}, {'c', &o->sums},      {'w', &o->watches}, {'t', &o->total}};
    for (; *letters; letters++) {
        size_t i = 0;
        while (i < sizeof all / sizeof *all && all[i].letter != *letters)
            i++;
        if (i == sizeof all / sizeof *all && *letters != '-')
            return usage_error(NAME, "there is no letter '%c'", *letters);
        if (*letters != '-')
            *all[i].set = true;
    }
    return EXIT_OK;
}

/* transfer send LETTERS [--exclude PATTERN]... PATH... */
int transfer_main(int argc, char **argv)
{
    struct transfer_options o = {0};
    char *excludes[EXCLUDES_MAX + 1] = {NULL};
    int at = 3, n = 0;
    if (argc < 3)
        return usage_error(NAME, "send, take or list, letters and paths are wanted");
    if (take_letters(&o, argv[2]) != EXIT_OK)
        return EXIT_USAGE;
    for (; at + 1 < argc && strcmp(argv[at], "--exclude") == 0; at += 2) {
        if (n == EXCLUDES_MAX)
            return usage_error(NAME, "there may be %d patterns", EXCLUDES_MAX);
        excludes[n++] = argv[at + 1];
    }
    at += at < argc && strcmp(argv[at], "--") == 0;
    if (at >= argc)
        return usage_error(NAME, "a path is wanted");
    struct err err;
    if (code_unpack(CODE_transfer, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    signal(SIGPIPE, SIG_DFL);
    if (strcmp(argv[1], "send") == 0)
        return transfer_send(&o, excludes, argv + at);
    if (strcmp(argv[1], "list") == 0)
        return transfer_list(&o, excludes, argv[at], argv + at + 1);
    if (strcmp(argv[1], "take") == 0)
        return transfer_take(&o, argv[at], argv + at + 1);
    return usage_unknown(NAME, "command", argv[1], NULL);
}

const struct applet transfer_applet = {
    .name = NAME,
    .summary = "the half of cp and sync that runs where the files are",
    .run = transfer_main,
};
