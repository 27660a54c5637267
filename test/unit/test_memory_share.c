/* Each check has a root directory of its own, with what the kernel says of groups and memory in plain files.
 */
#include "support.h"

#include "buf.h"
#include "cgroup.h"
#include "memory_share.h"

#define MIB (1024ull * 1024)
#define NO_MOST SIZE_MAX

static char dir[64];

static int set_up(void **state)
{
    (void)state;
    make_dir(dir);
    return chdir(dir);
}

static int tear_down(void **state)
{
    (void)state;
    return leave_dir(dir);
}

/* A file of that root, with the directories that lead to it. */
static void put(const char *path, const char *text)
{
    char at[128];
    snprintf(at, sizeof at, "%s", path);
    for (char *slash = strchr(at, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        assert_true(mkdir(at, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void put_memory(unsigned long long bytes)
{
    char text[200];
    snprintf(text, sizeof text,
             "MemTotal:       99999999 kB\nMemFree:  5 kB\nMemAvailable:   %llu kB\nBuffers: 7 kB\n",
             bytes / 1024);
    put("proc/meminfo", text);
}

/* What is free, as a holder of exactly the least sees it. */
struct free_now {
    unsigned long long want;
    int resource; /* to be limited, or -1 */
    unsigned long long limit;
};

static void check_free(void *arg)
{
    const struct free_now *f = arg;
    struct memory_share s = {0};
    if (f->resource >= 0) {
        struct rlimit limit = {f->limit, f->limit};
        if (setrlimit((__rlimit_resource_t)f->resource, &limit) < 0)
            cannot("the limit is lower already");
    }
    enter_root(dir);
    size_t got = memory_share(&s, MEMORY_SHARE_LEAST, NO_MOST);
    unsigned long long want = (f->want + MEMORY_SHARE_LEAST) / 10;
    if (got != (want < MEMORY_SHARE_LEAST ? MEMORY_SHARE_LEAST : want))
        fprintf(stderr, "%zu, not %llu\n", got, want);
    CHECK(got == (want < MEMORY_SHARE_LEAST ? MEMORY_SHARE_LEAST : want));
}

static void assert_free(unsigned long long want)
{
    struct free_now f = {want, -1, 0};
    in_child(check_free, &f);
}

/* ---- the machine and the process ---- */

static void the_machines_memory_is_a_limit(void **state)
{
    (void)state;
    put_memory(100 * MIB);
    assert_free(100 * MIB);
    put_memory(0);
    assert_free(0);
}

static void check_without_meminfo(void *arg)
{
    (void)arg;
    struct memory_share s = {0};
    enter_root(dir);
    size_t got = memory_share(&s, MEMORY_SHARE_LEAST, NO_MOST);
    CHECK(got >= MEMORY_SHARE_LEAST && got < NO_MOST / 100);
}

static void without_proc_the_kernel_is_asked(void **state)
{
    (void)state;
    in_child(check_without_meminfo, NULL);
    put("proc/meminfo", "MemTotal: 5 kB\n");
    in_child(check_without_meminfo, NULL);
}

static void the_process_has_limits(void **state)
{
    (void)state;
    char text[200];
    long page = sysconf(_SC_PAGESIZE);
    unsigned long long limit = 1ull << 46; /* more than the sanitizers take */
    unsigned long long pages = (limit - 50 * MIB) / (unsigned long long)page;
    put_memory(100 * MIB);
    snprintf(text, sizeof text, "%llu 1 2 3 4 5 6\n", pages);
    put("proc/self/statm", text);
    in_child(check_free, &(struct free_now){50 * MIB, RLIMIT_AS, limit});
    assert_free(100 * MIB);
    snprintf(text, sizeof text, "1 2 3 4 5 %llu 6\n", pages);
    put("proc/self/statm", text);
    in_child(check_free, &(struct free_now){50 * MIB, RLIMIT_DATA, limit});
    in_child(check_free, &(struct free_now){100 * MIB, RLIMIT_AS, limit});
    snprintf(text, sizeof text, "%llu\n", 2 * pages); /* more than the limit: nothing is free */
    put("proc/self/statm", text);
    in_child(check_free, &(struct free_now){0, RLIMIT_AS, limit});
}

/* ---- control groups ---- */

static void the_tightest_group_is_the_limit(void **state)
{
    (void)state;
    put_memory(1000 * MIB);
    put("proc/self/cgroup", "0::/a/b\n");
    assert_free(1000 * MIB); /* nothing is mounted */
    put("sys/fs/cgroup/a/b/memory.max", "max\n");
    put("sys/fs/cgroup/a/b/memory.current", "1\n");
    assert_free(1000 * MIB);
    put("sys/fs/cgroup/a/memory.max", "104857600\n"); /* 100 MiB, one above */
    put("sys/fs/cgroup/a/memory.current", "10485760\n");
    assert_free(90 * MIB);
    put("sys/fs/cgroup/a/memory.high", "52428800\n"); /* 50 MiB */
    assert_free(40 * MIB);
    put("sys/fs/cgroup/a/b/memory.max", "20971520\n"); /* 20 MiB */
    assert_free(20 * MIB - 1);
    put("sys/fs/cgroup/a/b/memory.current", "99971520\n");
    assert_free(0);
    put("sys/fs/cgroup/a/b/memory.current", "odd\n"); /* can't be told: nothing is used */
    assert_free(20 * MIB);
    put("sys/fs/cgroup/memory.max", "15728640\n"); /* 15 MiB, where it begins */
    assert_free(15 * MIB);
}

static void files_in_memory_can_be_taken_back(void **state)
{
    (void)state;
    put_memory(1000 * MIB);
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/memory.max", "104857600\n");
    put("sys/fs/cgroup/memory.current", "52428800\n");
    put("sys/fs/cgroup/memory.stat", "anon 5\ninactive_file 10485760\nactive_file 5242880\nslab 7\n");
    assert_free(65 * MIB);
    put("sys/fs/cgroup/memory.stat",
        "anon 5\ninactive_file 10485760\ntotal_inactive_file 20971520\ntotal_active_file 0\n");
    assert_free(70 * MIB); /* with the groups below */
    put("sys/fs/cgroup/memory.stat", "anon 5\ninactive_file 999999999\n");
    assert_free(100 * MIB);
    put("sys/fs/cgroup/memory.stat", "");
    assert_free(50 * MIB);
}

static void groups_of_version_1_are_limits_as_well(void **state)
{
    (void)state;
    put_memory(1000 * MIB);
    put("proc/self/cgroup",
        "garbage\n5:cpu,cpuacct:/x\n4:memory:/x/y\n1:name=systemd:/\n3:odd\n2:odd:none\n");
    put("sys/fs/cgroup/memory/x/y/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    put("sys/fs/cgroup/memory/x/y/memory.usage_in_bytes", "7\n");
    assert_free(1000 * MIB);
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "104857600\n");
    put("sys/fs/cgroup/memory/memory.usage_in_bytes", "31457280\n");
    assert_free(70 * MIB);
    put("proc/self/cgroup", ""); /* unknown: where they usually are */
    assert_free(70 * MIB);
    put("proc/self/cgroup", "4:memory:/../../x\n"); /* of what this namespace doesn't show */
    assert_free(70 * MIB);
}

static struct buf seen;

static bool note(void *arg, int root, const char *group)
{
    CHECK(arg == &seen && root >= 0);
    buf_addf(&seen, "%s ", group);
    return strcmp(group, "/sys/fs/cgroup/stop/here") != 0;
}

static void check_order(void *arg)
{
    const char *want = arg;
    buf_init(&seen, BUF_NO_MAX);
    enter_root(dir);
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    cgroup_each(root, note, &seen);
    if (strcmp(buf_str(&seen), want) != 0)
        fprintf(stderr, "%s\n", buf_str(&seen));
    CHECK(strcmp(buf_str(&seen), want) == 0);
    buf_release(&seen);
    close(root);
}

static void groups_come_innermost_first(void **state)
{
    (void)state;
    static char usual[] = "/sys/fs/cgroup /sys/fs/cgroup/memory /sys/fs/cgroup/cpu /sys/fs/cgroup/pids ";
    static char two[] =
        "/sys/fs/cgroup/cpu/x /sys/fs/cgroup/cpu /sys/fs/cgroup/a/b/c /sys/fs/cgroup/a/b /sys/fs/cgroup/a "
        "/sys/fs/cgroup ";
    static char stops[] = "/sys/fs/cgroup/stop/here/x /sys/fs/cgroup/stop/here /sys/fs/cgroup/pids ";
    static char outside[] = "/sys/fs/cgroup ";
    in_child(check_order, usual); /* nothing says which */
    put("proc/self/cgroup", "7:cpu:/x\n0::/a/b/c");
    in_child(check_order, two);
    put("proc/self/cgroup", "0::/stop/here/x\n3:pids:/\n");
    in_child(check_order, stops);
    put("proc/self/cgroup", "0::/../x\n");
    in_child(check_order, outside);
    put("proc/self/cgroup", "no line\nhalf:a line\n5:cpu:relative\n0::/\n");
    in_child(check_order, outside);
}

struct kills {
    unsigned long long want;
};

static void check_kills(void *arg)
{
    const struct kills *k = arg;
    unsigned before = open_descriptors();
    enter_root(dir);
    CHECK(cgroup_oom_kills() == k->want);
    CHECK(open_descriptors() == before);
}

static void what_was_killed_for_memory_is_counted(void **state)
{
    (void)state;
    in_child(check_kills, &(struct kills){0});
    put("proc/self/cgroup", "4:memory:/x\n0::/a/b\n");
    put("sys/fs/cgroup/a/memory.events", "low 1\noom 3\noom_kill 12\noom_group_kill 0\n");
    in_child(check_kills, &(struct kills){12});
    put("sys/fs/cgroup/a/b/memory.events", "oom 1\noom_kill 2\n"); /* the inner one's are among them */
    in_child(check_kills, &(struct kills){2});
    put("sys/fs/cgroup/memory/x/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 40\n");
    in_child(check_kills, &(struct kills){42});
    put("sys/fs/cgroup/a/b/memory.events", "nothing\n");
    in_child(check_kills, &(struct kills){52});
}

/* ---- when it is looked at ---- */

static void check_looks(void *arg)
{
    (void)arg;
    struct memory_share s = {0};
    size_t least = MEMORY_SHARE_LEAST, held = 1 << 20;
    enter_root(dir);
    CHECK(memory_share(&s, 0, NO_MOST) == least && memory_share(&s, least - 1, NO_MOST) == least);
    CHECK(memory_share(&s, 0, 1000) == 1000 && memory_share(&s, 1000, 1000) == 1000);
    CHECK(s.allowed != 0 || s.looked_at == 0);
    s = (struct memory_share){0};
    size_t first = (100 * MIB + held) / 10, second = (50 * MIB + held + least) / 10;
    CHECK(memory_share(&s, held, NO_MOST) == first);
    CHECK(memory_share(&s, held, 2 << 20) == 2 << 20);
    put_memory(50 * MIB);
    CHECK(memory_share(&s, held + least - 1, NO_MOST) == first); /* nearly the same */
    CHECK(memory_share(&s, held - least + 1, NO_MOST) == first);
    CHECK(memory_share(&s, held + least, NO_MOST) == second);
    put_memory(20 * MIB);
    CHECK(memory_share(&s, held + 1, NO_MOST) == second);
    CHECK(memory_share(&s, held, NO_MOST) == (20 * MIB + held) / 10);
    put_memory(0);
    CHECK(memory_share(&s, held + 5, NO_MOST) == (20 * MIB + held) / 10);
    CHECK(memory_share(&s, (20 * MIB + held) / 10, NO_MOST) == least); /* it is full */
}

static void limits_are_looked_at_when_much_has_changed(void **state)
{
    (void)state;
    put_memory(100 * MIB);
    in_child(check_looks, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_machines_memory_is_a_limit),
        TEST(without_proc_the_kernel_is_asked),
        TEST(the_process_has_limits),
        TEST(the_tightest_group_is_the_limit),
        TEST(files_in_memory_can_be_taken_back),
        TEST(groups_of_version_1_are_limits_as_well),
        TEST(groups_come_innermost_first),
        TEST(what_was_killed_for_memory_is_counted),
        TEST(limits_are_looked_at_when_much_has_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
