#include "serve_policy.h"

#ifndef TOOLBOX_GUEST

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands/confine/server_policy.h"
#include "dir_empty.h"
#include "io.h"
#include "place.h"
#include "relocate.h"
#include "tool.h"

enum { TRIES = 100, AGAIN_US = 20000 };

static int alive = -1; /* a pipe that ends with this process and those that do its calls */
static pid_t watcher;

/* Its server ends with all that it has started where its directory is gone. */
static void remove_place(const char *path)
{
    for (int tries = 0; tries < TRIES && rmdir(path) < 0 && errno != ENOENT; tries++) {
        dir_empty(io_open_dir(AT_FDCWD, path), 0);
        if (tries > 0)
            usleep(AGAIN_US);
    }
}

static _Noreturn void watch(const char *path, int end)
{
    static const int passed_over[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    char byte;
    setsid();
    for (size_t i = 0; i < sizeof passed_over / sizeof *passed_over; i++)
        signal(passed_over[i], SIG_IGN);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    io_close_others(&end, 1);
    io_fill_std();
    while (read(end, &byte, 1) < 0 && errno == EINTR)
        continue;
    remove_place(path);
    _exit(0);
}

static int make_place(char *path, size_t size, struct err *err)
{
    static const char *const tops[] = {"/run", "/tmp", "/var/tmp", "/dev/shm"};
    for (size_t i = 0; i < sizeof tops / sizeof *tops; i++) {
        snprintf(path, size, "%s/.toolbox-policy-XXXXXX", tops[i]);
        if (mkdtemp(path))
            return 0;
    }
    return err_sys(err, ERR_TOOL, errno, "there is no directory for a server of its own");
}

int serve_policy_begin(const char *file, struct err *err)
{
    char path[64];
    const char *names[METHODS_MAX];
    int ends[2];
    struct place place PLACE_AUTO = PLACE_INIT;
    tool_method_names(names, METHODS_MAX);
    if (code_unpack(CODE_confine, err) < 0 || server_policy_load(AT_FDCWD, file, names, err) < 0)
        return -1;
    if (make_place(path, sizeof path, err) < 0)
        return -1;
    if (place_enter(&place, path, false, err) < 0 || server_policy_put(place.fd, file, err) < 0 ||
        pipe2(ends, O_CLOEXEC) < 0) {
        remove_place(path);
        return -1;
    }
    watcher = fork();
    if (watcher == 0)
        watch(path, ends[0]);
    close(ends[0]);
    alive = ends[1];
    setenv("TOOLBOX_DIR", path, 1);
    return 0;
}

void serve_policy_end(void)
{
    io_close(&alive);
    if (watcher > 0)
        waitpid(watcher, NULL, 0);
}

static bool names_tool(const char *list, const char *tool)
{
    size_t n = strlen(tool);
    for (const char *at = list; at && (at = strstr(at, tool)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == '\0' || at[n] == ','))
            return true;
    return false;
}

/* What does its work here stands for a method that does the same. */
static const char *const alone[][2] = {{"read_file", "file_read"},
                                       {"write_file", "file_write"},
                                       {"list_files", "file_list"},
                                       {"find_files", "file_find"},
                                       {"search_files", "file_search"}};

static const char *stands_for(const struct mcp_tool *t)
{
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        if (strcmp(alone[i][0], t->name) == 0)
            return alone[i][1];
    return NULL;
}

bool serve_policy_offers(const struct mcp_tool *t)
{
    const char *one = stands_for(t);
    bool shell = strncmp(t->name, "shell_", 6) == 0, web = strncmp(t->name, "web_", 4) == 0;
    if (!server_policy)
        return true;
    if ((one && !policy_rules_allow(one)) || (shell && !policy_rules_allow("bash_session_new_session")) ||
        (web && !policy_rules_allow("web_new_session")))
        return false;
    for (const struct tool *const *at = tool_list(); *at; at++) {
        const struct rpc_method *tables[] = {(*at)->in_process, (*at)->server, (*at)->keeper};
        for (int i = 0; i < 3; i++)
            for (const struct rpc_method *m = tables[i]; m && m->name; m++)
                if (names_tool(m->mcp_tool, t->name) && !policy_rules_allow(m->name))
                    return false;
    }
    return true;
}

int serve_policy_enter(const struct mcp_tool *t, struct err *err)
{
    return server_policy && t && stands_for(t) ? server_policy_enter(err) : 0;
}

#endif
