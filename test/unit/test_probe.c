#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "json.h"
#include "commands/probe/probe_controller.h"
#include "commands/probe/probe_report.h"

/* ---- a root directory of our own, fresh for every test ---- */

static char root_path[32];
static int root = -1;

static int make_root(void **state)
{
    (void)state;
    unsetenv("container");
    unsetenv("KUBERNETES_SERVICE_HOST");
    snprintf(root_path, sizeof root_path, "/tmp/test_probe.XXXXXX");
    if (!mkdtemp(root_path))
        return -1;
    root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root < 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st, (void)kind, (void)where;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    close(root);
    return nftw(root_path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void make_parents(const char *path)
{
    char part[256];
    for (const char *at = path; (at = strchr(at, '/')); at++) {
        snprintf(part, sizeof part, "%.*s", (int)(at - path), path);
        mkdirat(root, part, 0755);
    }
}

static void put(const char *path, const void *data, size_t n, mode_t mode)
{
    make_parents(path);
    int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, n), n);
    close(fd);
}

static void put_text(const char *path, const char *text)
{
    put(path, text, strlen(text), 0644);
}

static void put_link(const char *path, const char *target)
{
    make_parents(path);
    assert_int_equal(symlinkat(target, root, path), 0);
}

/* ---- limits ---- */

static struct probe_limits limits(void)
{
    struct probe_limits l;
    probe_limits(&l, root);
    return l;
}

static long long all_cpus(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN) * 100;
}

static void without_groups_there_are_no_limits(void **state)
{
    (void)state;
    struct probe_limits l = limits();
    assert_int_equal(l.memory, PROBE_UNKNOWN);
    assert_int_equal(l.pids, PROBE_UNKNOWN);
    assert_in_range(l.centicpus, 100, all_cpus());
}

static void version_2_counts_all_groups_above(void **state)
{
    (void)state;
    put_text("proc/self/cgroup", "0::/a/b/c\n");
    put_text("sys/fs/cgroup/a/b/c/memory.max", "max\n");
    put_text("sys/fs/cgroup/a/b/memory.max", "536870912\n");
    put_text("sys/fs/cgroup/a/memory.max", "1073741824\n");
    put_text("sys/fs/cgroup/a/b/c/pids.max", "100\n");
    put_text("sys/fs/cgroup/a/pids.max", "max\n");
    put_text("sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
    put_text("sys/fs/cgroup/cpu.max", "50000 100000\n");
    struct probe_limits l = limits();
    assert_int_equal(l.memory, 536870912);
    assert_int_equal(l.pids, 100);
    assert_int_equal(l.centicpus, 50);
}

static void version_1_has_a_hierarchy_for_each(void **state)
{
    (void)state;
    put_text("proc/self/cgroup",
             "12:cpu,cpuacct:/docker/x\n11:memory:/docker/x\n10:pids:/\n1:name=systemd:/docker/x\n0::/x\n");
    put_text("sys/fs/cgroup/memory/memory.limit_in_bytes",
             "268435456\n"); /* mounted from the container's group on */
    put_text("sys/fs/cgroup/pids/pids.max", "77\n");
    put_text("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "33333\n");
    put_text("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
    struct probe_limits l = limits();
    assert_int_equal(l.memory, 268435456);
    assert_int_equal(l.pids, 77);
    assert_int_equal(l.centicpus, 33);
}

static void version_1_says_none_with_numbers(void **state)
{
    (void)state;
    put_text("proc/self/cgroup", "11:memory:/\n12:cpu:/\n");
    put_text("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put_text("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put_text("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    struct probe_limits l = limits();
    assert_int_equal(l.memory, PROBE_UNKNOWN);
    assert_in_range(l.centicpus, 100, all_cpus());
}

static void without_proc_the_mounted_root_counts(void **state)
{
    (void)state;
    put_text("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000\n");
    put_text("sys/fs/cgroup/pids.max", "5\n");
    struct probe_limits l = limits();
    assert_int_equal(l.memory, 1000000);
    assert_int_equal(l.pids, 5);
}

static void odd_group_files_are_no_limits(void **state)
{
    (void)state;
    put_text("proc/self/cgroup", "\n:\n::\n0::\n0:\n0::relative\nx\n0::/../../etc\n0::/ok\n0::/");
    put_text("sys/etc/memory.max", "1\n");
    put_text("sys/fs/cgroup/ok/memory.max", "\n");
    put_text("sys/fs/cgroup/ok/pids.max", "many\n");
    put_text("sys/fs/cgroup/ok/cpu.max", "100000 0\n");
    put_text("sys/fs/cgroup/cpu.max", "99999999999999999999 1\n");
    struct probe_limits l = limits();
    assert_int_equal(l.memory, PROBE_UNKNOWN);
    assert_int_equal(l.pids, PROBE_UNKNOWN);
    assert_in_range(l.centicpus, 100, all_cpus());
}

/* ---- the platform ---- */

static struct probe
    found; /* its platform alone; released by check_platform's callers through probe_release */

static const struct probe_platform *look(void)
{
    probe_release(&found);
    probe_platform(&found.platform, root);
    return &found.platform;
}

static void an_empty_root_has_nothing(void **state)
{
    (void)state;
    const struct probe_platform *s = look();
    assert_true(s->kernel.release[0] != '\0');
    assert_null(s->id);
    assert_null(s->version);
    assert_null(s->name);
    assert_null(s->container);
    assert_string_equal(s->libc, "none");
    assert_string_equal(s->libc_version, "");
    assert_int_equal(s->n_shells, 0);
}

static void the_distribution_has_two_places(void **state)
{
    (void)state;
    put_text("usr/lib/os-release", "ID=second\nNAME=Second\n");
    assert_string_equal(look()->id, "second");
    assert_string_equal(found.platform.name, "Second");
    put_link("etc/os-release", "/no/such/file");
    assert_string_equal(look()->id, "second");
    assert_int_equal(unlinkat(root, "etc/os-release", 0), 0);
    put_text("etc/os-release", "ID=first\r\nVERSION_ID=\"3.1\"\r\nPRETTY_NAME='The First'\r\n");
    assert_string_equal(look()->id, "first");
    assert_string_equal(found.platform.version, "3.1");
    assert_string_equal(found.platform.name, "The First");
}

/* A program that asks for this loader, little-endian and wide. */
static void put_program(const char *path, const char *loader)
{
    unsigned char image[256] = "\177ELF\2\1\1";
    image[32] = 64; /* e_phoff */
    image[54] = 56; /* e_phentsize */
    image[56] = 1;  /* e_phnum */
    image[64] = 3;  /* PT_INTERP */
    image[72] = 128;
    image[96] = (unsigned char)(strlen(loader) + 1);
    snprintf((char *)image + 128, 128, "%s", loader);
    put(path, image, sizeof image, 0755);
}

static void put_library(const char *path, const char *text, size_t n, size_t before)
{
    char *image = calloc(1, before + n + 100);
    memcpy(image + before, text, n);
    put(path, image, before + n + 100, 0755);
    free(image);
}

static void assert_libc(const char *kind, const char *version)
{
    const struct probe_platform *s = look();
    assert_string_equal(s->libc, kind);
    assert_string_equal(s->libc_version, version);
}

static void the_shells_loader_tells_the_libc(void **state)
{
    (void)state;
    static const char musl[] = "\0001.2.5\0", glibc[] = "ld.so (GNU libc) stable release version 2.36.\n";
    put_program("bin/sh", "/lib/ld-musl-x86_64.so.1");
    assert_libc("musl", ""); /* the loader itself is missing */
    put_library("lib/ld-musl-x86_64.so.1", musl, sizeof musl - 1, 300000);
    put_library("lib64/ld-linux-x86-64.so.2", glibc, sizeof glibc - 1, 200000);
    assert_libc("musl", "1.2.5");
    put_program("bin/sh", "/lib64/ld-linux-x86-64.so.2");
    assert_libc("glibc", "2.36");
    put_program("bin/sh", "/odd/loader");
    assert_libc("unknown", "");
}

static void a_version_is_found_across_pieces(void **state)
{
    (void)state;
    static const char text[] = " stable release version 2.36.\n";
    put_program("bin/sh", "/lib/ld-linux.so.2");
    for (size_t before = 32768 - sizeof text; before <= 32768 + 1; before++) {
        put_library("lib/ld-linux.so.2", text, sizeof text - 1, before);
        assert_libc("glibc", "2.36");
    }
}

static void links_lead_to_the_versioned_name(void **state)
{
    (void)state;
    put_text("lib/gnu/ld-2.31.so", "no text");
    put_link("lib/gnu/ld-linux-x86-64.so.2", "ld-2.31.so");
    put_link("lib64/ld-linux-x86-64.so.2", "/lib/gnu/ld-linux-x86-64.so.2");
    put_program("bin/sh", "/lib64/ld-linux-x86-64.so.2");
    assert_libc("glibc", "2.31");
    put_link("lib/loop", "loop");
    put_program("bin/sh", "/lib/loop");
    assert_libc("unknown", "");
}

static void without_a_program_the_folders_tell(void **state)
{
    (void)state;
    static const char old[] = "GNU C Library (GNU libc) stable release version 2.17, by";
    put_text("lib/ld-uClibc-1.0.42.so", "");
    put_link("lib/ld-uClibc.so.1", "ld-uClibc-1.0.42.so");
    assert_libc("uclibc", "1.0.42");
    put_text("lib64/ld-linux-x86-64.so.2", "copied, without its name");
    assert_libc("glibc", "");
    put_library("lib64/libc.so.6", old, sizeof old - 1, 100000);
    assert_libc("glibc", "2.17");
}

/* As gcompat does it, with a shell of its own or with none. */
static void a_loader_of_another_name_makes_no_other_libc(void **state)
{
    (void)state;
    static const char musl[] = "\0001.2.5\0";
    put_library("lib/ld-musl-x86_64.so.1", musl, sizeof musl - 1, 300000);
    put_text("lib/libgcompat.so.0", "");
    put_link("lib/ld-linux-x86-64.so.2", "libgcompat.so.0");
    put_link("lib64/ld-linux-x86-64.so.2", "../lib/libgcompat.so.0");
    assert_libc("musl", "1.2.5");
    put_program("bin/sh", "/lib64/ld-linux-x86-64.so.2");
    assert_libc("glibc", ""); /* who knows: Debian has a package of musl */
    put_text("etc/alpine-release", "3.22.1\n");
    assert_libc("musl", "1.2.5");
}

static void containers_tell_in_many_ways(void **state)
{
    (void)state;
    static const char init[] = "PATH=/bin\0container=lxc\0x=y";
    put("proc/1/environ", init, sizeof init, 0444);
    assert_string_equal(look()->container, "lxc");
    put_text(".dockerenv", "");
    assert_string_equal(look()->container, "docker");
    put_text("run/.containerenv", "");
    assert_string_equal(look()->container, "podman");
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    assert_string_equal(look()->container, "kubernetes");
    put_text("run/systemd/container", "systemd-nspawn\n");
    assert_string_equal(look()->container, "systemd-nspawn");
    setenv("container", "flatpak", 1);
    assert_string_equal(look()->container, "flatpak");
}

static void shells_are_what_can_be_run(void **state)
{
    (void)state;
    put("bin/bash", "x", 1, 0755);
    put("bin/dash", "x", 1, 0644);
    make_parents("bin/zsh/");
    put_link("usr/bin", "../bin");
    put_link("bin/sh", "bash");
    put("opt/odd shell", "x", 1, 0755);
    put_text("etc/shells",
             "# comment\r\n/bin/bash\r\n/usr/bin/bash\n\nopt/odd shell\n/opt/odd shell\n/no/such\n/bin");
    const struct probe_platform *s = look();
    assert_int_equal(s->n_shells, 3);
    assert_string_equal(s->shells[0], "/bin/bash");
    assert_string_equal(s->shells[1], "/bin/sh");
    assert_string_equal(s->shells[2], "/opt/odd shell");
}

static void shells_are_bounded(void **state)
{
    (void)state;
    char text[1024] = "", path[32];
    for (int i = 0; i < 40; i++) {
        snprintf(path, sizeof path, "s/%d", i);
        put(path, "x", 1, 0755);
        snprintf(text + strlen(text), sizeof text - strlen(text), "/%s\n", path);
    }
    put_text("etc/shells", text);
    assert_int_equal(look()->n_shells, PROBE_SHELLS_MAX);
}

/* ---- places ---- */

static int entries(const char *directory)
{
    int n = 0;
    DIR *dir = opendir(directory);
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2;
}

static void a_place_is_tried_and_left_as_it_was(void **state)
{
    (void)state;
    assert_null(probe_try_place(root_path));
    assert_int_equal(entries(root_path), 0);
    umask(0777); /* what the caller's umask takes away, the file needs */
    const char *refusal = probe_try_place(root_path);
    umask(022);
    assert_null(refusal);
    char missing[64];
    snprintf(missing, sizeof missing, "%s/x", root_path);
    assert_string_equal(probe_try_place(missing), strerror(ENOENT));
    put_text("x", "");
    assert_string_equal(probe_try_place(missing), strerror(ENOTDIR));
    assert_non_null(probe_try_place("/proc/self"));
    assert_non_null(probe_try_place(""));
}

/* ---- reports ---- */

static char odd[] = "/a\"\\\x1b[31m\n\xff\xc2\x9b\x7f";

static void make_odd(struct probe *p)
{
    static gid_t groups[] = {0, 4294967294u};
    *p = (struct probe){
        .self = {.path = odd, .size = PROBE_UNKNOWN},
        .platform = {.id = odd, .libc = "unknown", .container = odd, .shells = {odd}, .n_shells = 1},
        .identity = {.user = odd,
                     .home = odd,
                     .groups = groups,
                     .n_groups = 2,
                     .seccomp = PROBE_UNKNOWN,
                     .no_new_privs = PROBE_UNKNOWN,
                     .capabilities_known = true,
                     .capabilities = 1ULL << 63 | 1},
        .places = {{odd, NULL}, {odd, "refused"}},
        .n_places = 2,
        .limits = {-1, -1, -1, -1, -1, -1},
        .pty_refusal = odd,
        .server = {true, 7, odd},
    };
}

static void assert_member(struct span object, const char *key, const char *text)
{
    struct span value;
    assert_true(json_member(object, key, &value, NULL));
    assert_int_equal(value.n, strlen(text));
    assert_memory_equal(value.s, text, value.n);
}

static void json_is_valid_whatever_was_found(void **state)
{
    (void)state;
    struct probe p;
    struct buf out BUF_AUTO = BUF_INIT;
    struct err err = {0};
    make_odd(&p);
    probe_json(&p, &out);
    assert_int_equal(json_check(span_of(&out), &err), 0);
    assert_ptr_equal(memchr(out.data, '\n', out.len), out.data + out.len - 1);
    assert_member(span_of(&out), "sha256", "null");
    assert_member(span_of(&out), "size", "null");
    assert_member(span_of(&out), "seccomp", "null");
    assert_member(span_of(&out), "no_new_privs", "null");
    assert_member(span_of(&out), "groups", "[0,4294967294]");
    assert_member(span_of(&out), "capabilities", "[\"cap_chown\",\"cap_63\"]");
    assert_member(
        span_of(&out), "limits",
        "{\"nofile\":null,\"nofile_max\":null,\"nproc\":null,\"pids\":null,\"memory\":null,\"cpus\":null}");
    assert_member(span_of(&out), "pty", "false");

    buf_truncate(&out, 0);
    p.n_places = p.platform.n_shells = p.identity.n_groups = 0;
    p.identity.capabilities = 0;
    p.limits.centicpus = 150;
    probe_json(&p, &out);
    assert_int_equal(json_check(span_of(&out), &err), 0);
    assert_member(span_of(&out), "places", "[]");
    assert_member(span_of(&out), "places_refused", "[]");
    assert_member(span_of(&out), "capabilities", "[]");
    assert_non_null(strstr(out.data, "\"cpus\":1.50}"));
}

static void the_table_never_speaks_to_the_terminal(void **state)
{
    (void)state;
    struct probe p;
    struct buf out BUF_AUTO = BUF_INIT;
    make_odd(&p);
    probe_table(&p, &out);
    for (size_t i = 0; i < out.len; i++) {
        unsigned char c = (unsigned char)out.data[i];
        assert_true((c >= 0x20 && c != 0x7f) || c == '\n');
        assert_false(c == 0xC2 && (unsigned char)out.data[i + 1] < 0xA0);
    }
    assert_non_null(strstr(out.data, "cap_chown cap_63"));
    p.identity.capabilities = PROBE_CAPABILITIES_ALL & ~(1ULL << 21);
    buf_truncate(&out, 0);
    probe_table(&p, &out);
    assert_non_null(strstr(out.data, "all but cap_sys_admin\n"));
}

static void this_process_is_known(void **state)
{
    (void)state;
    struct probe p;
    assert_int_equal(chdir("/tmp"), 0); /* one of the usual places */
    probe_collect(&p);
    assert_non_null(p.self.path);
    assert_int_equal(strlen(p.self.sha256), 64);
    struct stat st;
    assert_int_equal(stat("/proc/self/exe", &st), 0);
    assert_int_equal(p.self.size, st.st_size);
    assert_int_equal(p.identity.uid, geteuid());
    assert_int_equal(p.identity.groups[0], getegid());
    for (size_t i = 0; i < p.n_places; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(p.places[i].path, p.places[k].path);
    probe_release(&p);
}

int main(void)
{
#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        IN_ROOT(without_groups_there_are_no_limits),
        IN_ROOT(version_2_counts_all_groups_above),
        IN_ROOT(version_1_has_a_hierarchy_for_each),
        IN_ROOT(version_1_says_none_with_numbers),
        IN_ROOT(without_proc_the_mounted_root_counts),
        IN_ROOT(odd_group_files_are_no_limits),
        IN_ROOT(an_empty_root_has_nothing),
        IN_ROOT(the_distribution_has_two_places),
        IN_ROOT(the_shells_loader_tells_the_libc),
        IN_ROOT(a_version_is_found_across_pieces),
        IN_ROOT(links_lead_to_the_versioned_name),
        IN_ROOT(without_a_program_the_folders_tell),
        IN_ROOT(a_loader_of_another_name_makes_no_other_libc),
        IN_ROOT(containers_tell_in_many_ways),
        IN_ROOT(shells_are_what_can_be_run),
        IN_ROOT(shells_are_bounded),
        IN_ROOT(a_place_is_tried_and_left_as_it_was),
        cmocka_unit_test(json_is_valid_whatever_was_found),
        cmocka_unit_test(the_table_never_speaks_to_the_terminal),
        cmocka_unit_test(this_process_is_known),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    probe_release(&found);
    return failed;
}
