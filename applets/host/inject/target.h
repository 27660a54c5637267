/* Where a binary is to go: SCHEME:NAME, and how a program is run there.
 *
 * Every kind of target is one row of a table: which runtime enters it, whether that can choose the user and
 * copy files by itself, and how its patterns are listed. */
#ifndef INJECT_TARGET_H
#define INJECT_TARGET_H

#include <stdbool.h>

#include "host/inject/argv.h"

struct target;

/* What the command line says about runtimes. */
struct runtime_options {
    const char *runtime; /* --runtime: words that stand for the scheme's own program; NULL: that program */
    const char
        *root_exec; /* --root-exec: the prefix of exec: targets that runs as root; NULL: there is none */
};

/* What the runtime's own copying takes. */
enum target_copies { COPIES_NOTHING, COPIES_ARCHIVE, COPIES_FILES };

struct target_kind {
    const char *scheme;
    const char *form;    /* for help: what follows the scheme */
    const char *program; /* the runtime; NULL: none is needed */
    const char *root;    /* how the runtime is told to run as root; NULL: it can't choose the user */
    enum target_copies copies;
    bool joined; /* the runtime hands one line to a shell: words have to be quoted */
    bool folder; /* nothing runs there: a directory */
    int parts;   /* the name's most parts, separated by slashes; 0: it is one thing */
    /* Appends the words that go before a command's own; NULL for those above that need none. */
    int (*enter)(const struct target *t, const char *user, struct argv *out, struct err *err);
    /* Appends the command whose output lists names, one a line; NULL: there are no patterns. */
    int (*list)(const struct target *t, struct argv *out, struct err *err);
};

#define TARGET_PARTS 4

struct target {
    const struct target_kind *kind;
    char *text;       /* as given: "docker:web" */
    const char *name; /* what is behind the scheme, in text */
    char *
        parts[TARGET_PARTS]; /* context, namespace, pod and container; project and service; NULL: not given */
    struct runtime_options options;
    char *unlisted; /* of a pattern: why there is nothing that it stands for; NULL: this is a target */
};

/* All kinds; the last has no scheme. */
extern const struct target_kind target_kinds[];

/* Reads SCHEME:NAME. -1 with ERR_PARAMS that says what is wrong with it. */
int target_parse(struct target *t, const char *text, const struct runtime_options *options, struct err *err);
/* The same of one target that runs: neither a folder nor a pattern. */
int target_parse_running(struct target *t, const char *text, const struct runtime_options *options,
                         struct err *err);
void target_release(struct target *t);
#define TARGET_AUTO __attribute__((cleanup(target_release)))

/* The name without what is in front of its last slash. */
const char *target_id(const struct target *t);

/* True when it stands for any number of targets, which target_list finds. */
bool target_is_pattern(const struct target *t);

/* The command line that runs `command` there; user NULL: as whom the target runs things by default. -1 with
 * ERR_PARAMS. */
int target_command(const struct target *t, const char *user, const struct argv *command, struct argv *out,
                   struct err *err);

/* For a process of its own among many: runtimes are Go programs, whose threads take a fifth of the processors
 * for themselves. What runs in a container sees nothing of it. */
void target_be_one_of_many(const struct target *t);

/* The command line that copies a path of this machine, or "-": a tar archive, to a path there. */
int target_copy_command(const struct target *t, const char *from, const char *to, struct argv *out,
                        struct err *err);

#endif
