#include "surroundings.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "applet.h"
#include "json.h"
#include "mem.h"
#include "spawn.h"
#include "utf8.h"
#include "words.h"

static int add(struct env_words *env, const char *applet, const char *option, const char *word)
{
    const char *equals = strchr(word, '=');
    if (!equals || equals == word || !utf8_is_valid(word, strlen(word)))
        return usage_error(applet, "%s takes NAME=VALUE in UTF-8, not '%s'", option, word);
    env->list = mem_realloc(env->list, (env->n + 2) * sizeof *env->list);
    env->list[env->n++] = mem_strdup(word);
    env->list[env->n] = NULL;
    return EXIT_OK;
}

/* Empty lines and those with # in front say nothing. */
static int read_file(struct env_words *env, const char *applet, const char *path)
{
    struct buf text BUF_AUTO = BUF_INIT;
    char *rest = NULL;
    int status = words_file(applet, path, &text);
    if (status == EXIT_OK && memchr(buf_str(&text), '\0', text.len))
        return usage_error(applet, "%s: a NUL can't be in an environment", path);
    for (char *line = text.data ? strtok_r(text.data, "\r\n", &rest) : NULL; line && status == EXIT_OK;
         line = strtok_r(NULL, "\r\n", &rest))
        if (*line != '#')
            status = add(env, applet, "--env-file", line);
    return status;
}

int env_words_given(struct env_words *env, const struct command_line *c)
{
    int status = EXIT_OK;
    env->list = mem_zalloc(sizeof *env->list);
    for (size_t i = 0; i < c->n_given && status == EXIT_OK; i++) {
        const char *option = c->given[i].option->name;
        if (strcmp(option, "env") == 0)
            status = add(env, c->applet->name, "--env", c->given[i].value);
        else if (strcmp(option, "env-file") == 0)
            status = read_file(env, c->applet->name, c->given[i].value);
    }
    return status;
}

void env_words_release(struct env_words *env)
{
    for (size_t i = 0; i < env->n; i++)
        free(env->list[i]);
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

void surroundings_put(struct buf *params)
{
    mode_t mask = umask(0);
    umask(mask);
    json_key(params, "surroundings");
    buf_addc(params, '{');
    surroundings_put_env(params, true, NULL);
    surroundings_put_cwd(params);
    json_member_int(params, "umask", (long long)mask);
    json_key(params, "limits");
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
        getrlimit(i, &limit);
        buf_addf(params, "%c%d,%lld,%lld", i == 0 ? '[' : ',', i, (long long)limit.rlim_cur,
                 (long long)limit.rlim_max);
    }
    buf_adds(params, "]}");
}
