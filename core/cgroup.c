#include "cgroup.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "mem.h"

#define TEXT_MAX 65536

static bool read_text(int root, const char *path, struct buf *text)
{
    buf_init(text, TEXT_MAX);
    return io_read_file(root, path + 1, text) == 0;
}

bool cgroup_read(int root, const char *group, const char *file, struct buf *text)
{
    char *path MEM_AUTO = mem_printf("%s/%s", group, file);
    return read_text(root, path, text);
}

struct visit {
    int root;
    bool (*fn)(void *arg, int root, const char *group);
    void *arg;
};

static void each_above(const struct visit *v, const char *mount, const char *path)
{
    bool outside = strstr(path, "/..") != NULL; /* of what this namespace shows */
    char *group MEM_AUTO = mem_printf("%s%s", mount, outside || strcmp(path, "/") == 0 ? "" : path);
    for (char *end = group + strlen(group); end; end = strrchr(group + strlen(mount), '/')) {
        *end = '\0';
        if (!v->fn(v->arg, v->root, group))
            return;
    }
}

/* A line of /proc/self/cgroup is ID:CONTROLLERS:PATH; version 2 has no controllers. */
static void each_of_line(const struct visit *v, char *line)
{
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path || path[1] != '/')
        return;
    *path = *controllers = '\0';
    char *mount MEM_AUTO = mem_printf("/sys/fs/cgroup%s%s", controllers[1] ? "/" : "", controllers + 1);
    each_above(v, mount, path + 1);
}

void cgroup_each(int root, bool (*fn)(void *arg, int root, const char *group), void *arg)
{
    static const char *const usual[] = {"", "/memory", "/cpu", "/pids"};
    const struct visit v = {root, fn, arg};
    struct buf text BUF_AUTO;
    read_text(root, "/proc/self/cgroup", &text);
    for (char *line = text.data, *next; line && *line; line = next) {
        size_t len = strcspn(line, "\n");
        next = line + len + (line[len] == '\n');
        line[len] = '\0';
        each_of_line(&v, line);
    }
    if (text.len > 0)
        return;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        char *mount MEM_AUTO = mem_printf("/sys/fs/cgroup%s", usual[i]);
        each_above(&v, mount, "/");
    }
}

/* Both versions' files have a line "oom_kill N". */
static bool add_oom_kills(void *arg, int root, const char *group)
{
    static const char *const files[] = {"memory.events", "memory.oom_control"};
    for (size_t i = 0; i < 2; i++) {
        struct buf text BUF_AUTO;
        const char *line = cgroup_read(root, group, files[i], &text) ? strstr(text.data, "oom_kill ") : NULL;
        if (line) {
            *(unsigned long long *)arg += strtoull(line + sizeof "oom_kill", NULL, 10);
            return false; /* those above count others as well */
        }
    }
    return true;
}

unsigned long long cgroup_oom_kills(void)
{
    unsigned long long sum = 0;
    int root FD_AUTO = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    cgroup_each(root, add_oom_kills, &sum);
    return sum;
}
