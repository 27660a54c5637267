#include "memory_share.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "cgroup.h"
#include "io.h"

#define SHARE 10
#define NO_LIMIT (UINT64_MAX / 2)

static void lower(uint64_t *free, uint64_t limit, uint64_t used)
{
    uint64_t left = limit > used ? limit - used : 0;
    if (limit < NO_LIMIT / 2 && left < *free)
        *free = left;
}

/* ---- control groups ---- */

/* The number in a group's file; NO_LIMIT: there is none ("max"), or no such file. */
static uint64_t number_in(int root, const char *group, const char *file)
{
    struct buf text BUF_AUTO = BUF_INIT;
    char *end;
    if (!cgroup_read(root, group, file, &text) || text.len == 0)
        return NO_LIMIT;
    unsigned long long value = strtoull(text.data, &end, 10);
    return end > text.data && value < NO_LIMIT ? value : NO_LIMIT;
}

/* What the kernel takes back from files when it has to; of version 1 with the groups below. */
static uint64_t reclaimable(int root, const char *group)
{
    static const char *const keys[][2] = {{"\ntotal_inactive_file ", "\ninactive_file "},
                                          {"\ntotal_active_file ", "\nactive_file "}};
    struct buf text BUF_AUTO = BUF_INIT;
    uint64_t sum = 0;
    if (!cgroup_read(root, group, "memory.stat", &text) || text.len == 0)
        return 0;
    for (size_t i = 0; i < 2; i++) {
        const char *line = strstr(text.data, keys[i][0]);
        if (!line)
            line = strstr(text.data, keys[i][1]);
        if (line)
            sum += strtoull(strchr(line, ' '), NULL, 10);
    }
    return sum;
}

static bool look_at_group(void *arg, int root, const char *group)
{
    static const char *const limits[] = {"memory.max", "memory.high", "memory.limit_in_bytes"};
    static const char *const usages[] = {"memory.current", "memory.usage_in_bytes"};
    uint64_t limit = NO_LIMIT, used = NO_LIMIT;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        uint64_t value = number_in(root, group, limits[i]);
        limit = value < limit ? value : limit;
    }
    if (limit >= NO_LIMIT / 2)
        return true;
    for (size_t i = 0; i < 2 && used == NO_LIMIT; i++)
        used = number_in(root, group, usages[i]);
    uint64_t files = reclaimable(root, group);
    lower(arg, limit, used == NO_LIMIT ? 0 : used > files ? used - files : 0);
    return true;
}

/* ---- the process, and the machine ---- */

static void look_at_limits(uint64_t *free)
{
    static const struct {
        int resource, field; /* of /proc/self/statm, in pages */
    } limits[] = {{RLIMIT_AS, 0}, {RLIMIT_DATA, 5}};
    struct buf text BUF_AUTO = BUF_INIT;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit;
        if (getrlimit(limits[i].resource, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
            continue;
        if (text.len == 0 && io_read_file(AT_FDCWD, "/proc/self/statm", &text) < 0)
            buf_truncate(&text, 0);
        char *at = text.len > 0 ? text.data : NULL;
        uint64_t pages = 0;
        for (int field = 0; at && field <= limits[i].field; field++)
            pages = strtoull(at, &at, 10);
        lower(free, limit.rlim_cur, pages * (uint64_t)sysconf(_SC_PAGESIZE));
    }
}

static void look_at_machine(uint64_t *free)
{
    static const char key[] = "MemAvailable:";
    struct buf text BUF_AUTO = BUF_INIT;
    struct sysinfo info;
    const char *line =
        io_read_file(AT_FDCWD, "/proc/meminfo", &text) == 0 && text.len > 0 ? strstr(text.data, key) : NULL;
    if (line)
        lower(free, strtoull(line + sizeof key - 1, NULL, 10) * 1024, 0);
    else if (sysinfo(&info) == 0)
        lower(free, (uint64_t)(info.freeram + info.bufferram) * info.mem_unit, 0);
}

static uint64_t free_memory(void)
{
    uint64_t free = NO_LIMIT;
    int root FD_AUTO = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root >= 0)
        cgroup_each(root, look_at_group, &free);
    look_at_limits(&free);
    look_at_machine(&free);
    return free;
}

size_t memory_share(struct memory_share *s, size_t held, size_t most)
{
    size_t least = most < MEMORY_SHARE_LEAST ? most : MEMORY_SHARE_LEAST;
    if (held < least)
        return least;
    bool stale = s->allowed == 0 || held >= s->looked_at + MEMORY_SHARE_LEAST ||
                 held + MEMORY_SHARE_LEAST <= s->looked_at || held >= s->allowed;
    if (stale) {
        uint64_t share = (free_memory() + held) / SHARE;
        s->looked_at = held;
        s->allowed = share < least ? least : share < most ? (size_t)share : most;
    }
    return s->allowed < most ? s->allowed : most;
}
