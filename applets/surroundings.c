#include "surroundings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "applet.h"
#include "json.h"
#include "mem.h"
#include "spawn.h"
#include "utf8.h"

int env_words_given(struct env_words *env, const struct command_line *c)
{
    env->list = mem_zalloc((c->n_given + 1) * sizeof *env->list);
    for (size_t i = 0; i < c->n_given; i++) {
        char *word = c->given[i].value;
        const char *equals = strchr(word, '=');
        if (strcmp(c->given[i].option->name, "env") != 0)
            continue;
        if (!equals || equals == word || !utf8_is_valid(word, strlen(word)))
            return usage_error(c->applet->name, "--env takes NAME=VALUE in UTF-8, not '%s'", word);
        env->list[env->n++] = word;
    }
    return EXIT_OK;
}

void env_words_release(struct env_words *env)
{
    free(env->list);
}

void surroundings_put_env(struct buf *params, bool of_caller, char *const *extra)
{
    char **env = spawn_env(of_caller ? environ : NULL, extra, NULL);
    char between = '{';
    json_key(params, "env");
    for (char **at = env; *at; at++) {
        const char *equals = strchr(*at, '=');
        if (!equals || equals == *at || !utf8_is_valid(*at, strlen(*at)))
            continue;
        buf_addc(params, between);
        json_put_string(params, *at, (size_t)(equals - *at));
        buf_addc(params, ':');
        json_puts(params, equals + 1);
        between = ',';
    }
    buf_adds(params, between == '{' ? "{}" : "}");
    spawn_env_free(env);
}

void surroundings_put_cwd(struct buf *params)
{
    char *here MEM_AUTO = getcwd(NULL, 0);
    if (here && *here == '/' && utf8_is_valid(here, strlen(here)))
        json_member_string(params, "cwd", here);
}
