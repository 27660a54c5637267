/* The caller's environment, working directory and umask: what a program would inherit if it were started
 * here, as params of a call that has it started elsewhere. What can't be had through JSON, which is UTF-8, is
 * left out. */
#ifndef APPLETS_SURROUNDINGS_H
#define APPLETS_SURROUNDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "command.h"

/* The --env and --env-file options of a command line, in their order. `list` ends with NULL. */
struct env_words {
    char **list;
    size_t n;
};

/* Takes them from there. EXIT_OK; EXIT_USAGE, said, when one is no NAME=VALUE in UTF-8; EXIT_FAILED, said,
 * when a file can't be read. */
int env_words_given(struct env_words *env, const struct command_line *c);
void env_words_release(struct env_words *env);
#define ENV_WORDS_OPTIONS                                                                                    \
    {"env", "NAME=VALUE", "a variable more; may be given several times", 0},                                 \
    {                                                                                                        \
        "env-file", "FILE", "variables from a file, a NAME=VALUE a line (-: stdin); for what is secret", 0   \
    }
#define ENV_WORDS_TAKES "env env-file"
#define ENV_WORDS_AUTO __attribute__((cleanup(env_words_release)))

/* Adds the member "env": this process's environment where `of_caller`, overlaid with `extra` ("NAME=value";
 * may be NULL). */
void surroundings_put_env(struct buf *params, bool of_caller, char *const *extra);

/* Adds the member "surroundings": all of them, resource limits too (rpc/surroundings_param.h). */
void surroundings_put(struct buf *params);

/* Adds the member "cwd": the current directory. */
void surroundings_put_cwd(struct buf *params);

#endif
