/* What this process may use: its own limits, and those of its control group and of every group above it. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "buf.h"
#include "mem.h"
#include "probe_controller.h"

/* Version 1 of control groups has no word for "none": it gives the largest number of pages. */
#define NO_LIMIT (1LL << 60)

static void lower(long long *limit, long long value)
{
    if (value >= 0 && value < NO_LIMIT && (*limit == PROBE_UNKNOWN || value < *limit))
        *limit = value;
}

/* ---- control groups ---- */

/* The first two numbers of a group's file; what is no number ("max") or not there is PROBE_UNKNOWN. */
static void read_numbers(int root, const char *group, const char *file, long long numbers[2])
{
    char *path MEM_AUTO = mem_printf("%s/%s", group, file);
    struct buf text BUF_AUTO;
    probe_read_text(root, path, &text);
    const char *at = buf_str(&text);
    for (int i = 0; i < 2; i++) {
        char *end;
        long long value = strtoll(at, &end, 10);
        numbers[i] = end > at && value >= 0 ? value : PROBE_UNKNOWN;
        at = end > at ? end : at + strcspn(at, " \n");
    }
}

static void lower_cpus(struct probe_limits *l, long long quota, long long period)
{
    if (quota > 0 && quota < NO_LIMIT / 100 && period > 0)
        lower(&l->centicpus, (quota * 100 + period / 2) / period);
}

/* Both versions' files: a group has those of one, and which controllers stand in which hierarchy needn't be
 * known. */
static void read_group(int root, const char *group, struct probe_limits *l)
{
    long long n[2], period[2];
    read_numbers(root, group, "memory.max", n);
    lower(&l->memory, n[0]);
    read_numbers(root, group, "memory.limit_in_bytes", n);
    lower(&l->memory, n[0]);
    read_numbers(root, group, "pids.max", n);
    lower(&l->pids, n[0]);
    read_numbers(root, group, "cpu.max", n);
    lower_cpus(l, n[0], n[1]);
    read_numbers(root, group, "cpu.cfs_quota_us", n);
    read_numbers(root, group, "cpu.cfs_period_us", period);
    lower_cpus(l, n[0], period[0]);
}

/* The group and those above it. Where one is not there it has no limits: without a namespace the path is the
 * host's, while what is mounted begins with the container's own group. */
static void read_hierarchy(int root, const char *mount, const char *path, struct probe_limits *l)
{
    bool outside = strstr(path, "/..") != NULL; /* of what this namespace shows */
    char *group MEM_AUTO = mem_printf("%s%s", mount, outside || strcmp(path, "/") == 0 ? "" : path);
    for (char *end = group + strlen(group); end; end = strrchr(group + strlen(mount), '/')) {
        *end = '\0';
        read_group(root, group, l);
    }
}

/* Lines of /proc/self/cgroup are ID:CONTROLLERS:PATH; version 2 has no controllers. */
static void read_groups(int root, struct probe_limits *l)
{
    static const char *const usual[] = {"", "/memory", "/cpu", "/pids"};
    struct buf text BUF_AUTO;
    probe_read_text(root, "/proc/self/cgroup", &text);
    for (char *line = text.data, *next; line && *line; line = next) {
        size_t len = strcspn(line, "\n");
        next = line + len + (line[len] == '\n');
        line[len] = '\0';
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path || path[1] != '/')
            continue;
        *path = *controllers = '\0';
        char *mount MEM_AUTO = mem_printf("/sys/fs/cgroup%s%s", controllers[1] ? "/" : "", controllers + 1);
        read_hierarchy(root, mount, path + 1, l);
    }
    if (text.len > 0)
        return;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        char *mount MEM_AUTO = mem_printf("/sys/fs/cgroup%s", usual[i]);
        read_hierarchy(root, mount, "/", l);
    }
}

/* ---- the process ---- */

static long long own_limit(rlim_t value)
{
    return value == RLIM_INFINITY || value > INT64_MAX ? PROBE_UNKNOWN : (long long)value;
}

static long long count_cpus(void)
{
    unsigned char set[8192 / 8];
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof set, set);
    long long count = 0;
    for (long i = 0; i < bytes; i++)
        count += __builtin_popcount(set[i]);
    return count > 0 ? count : PROBE_UNKNOWN;
}

void probe_limits(struct probe_limits *l, int root)
{
    struct rlimit nofile = {RLIM_INFINITY, RLIM_INFINITY}, nproc = nofile;
    getrlimit(RLIMIT_NOFILE, &nofile);
    getrlimit(RLIMIT_NPROC, &nproc);
    long long cpus = count_cpus();
    *l = (struct probe_limits){
        .nofile = own_limit(nofile.rlim_cur),
        .nofile_max = own_limit(nofile.rlim_max),
        .nproc = own_limit(nproc.rlim_cur),
        .pids = PROBE_UNKNOWN,
        .memory = PROBE_UNKNOWN,
        .centicpus = cpus > 0 ? cpus * 100 : PROBE_UNKNOWN,
    };
    read_groups(root, l);
}
