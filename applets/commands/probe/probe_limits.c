/* What this process may use: its own limits, and those of its control group and of every group above it. */
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "buf.h"
#include "cgroup.h"
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
    struct buf text BUF_AUTO;
    cgroup_read(root, group, file, &text);
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
static bool read_group(void *limits, int root, const char *group)
{
    struct probe_limits *l = limits;
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
    return true;
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
    cgroup_each(root, read_group, l);
}
