/* Who carries a mark, and who is found by it. */
#include "support.h"

#include "io.h"
#include "mark.h"
#include "proc.h"

#define KEEPER 1ull /* of a mark's bits */

static char dirs[2][64];
static unsigned long long marks[2];

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        make_dir(dirs[i]);
        int fd = open(dirs[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        marks[i] = mark_of(fd);
        close(fd);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_dir(dirs[0]);
    remove_dir(dirs[1]);
    return 0;
}

static unsigned long long limit(void)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_RTTIME, &limit) == 0);
    return limit.rlim_cur;
}

static void set_limit(unsigned long long soft)
{
    struct rlimit limit = {.rlim_cur = soft, .rlim_max = RLIM_INFINITY};
    if (setrlimit(RLIMIT_RTTIME, &limit) < 0)
        cannot("there is such a limit already");
}

/* ---- marks ---- */

static void check_other_user(void *arg)
{
    (void)arg;
    chmod(dirs[0], 0755);
    become_stranger();
    int fd = open(dirs[0], O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0 && mark_of(fd) != 0 && mark_of(fd) != marks[0]);
}

static void check_other_root(void *arg)
{
    (void)arg;
    int fd = open(dirs[0], O_PATH | O_DIRECTORY | O_CLOEXEC);
    enter_root(dirs[1]);
    CHECK(mark_of(fd) != 0 && mark_of(fd) != marks[0]);
}

static void a_mark_is_that_of_a_place(void **state)
{
    (void)state;
    int fd = open(dirs[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(mark_of(fd) == marks[0]);
    close(fd);
    assert_true(mark_of(fd) == 0);
    assert_true(marks[0] != marks[1]);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(marks[i] >> 47, 0x7462);
        assert_int_equal(marks[i] & KEEPER, 0);
    }
    in_child(check_other_root, NULL);
    in_child(check_other_user, NULL);
}

static void check_limit(void *arg)
{
    (void)arg;
    unsigned long long mark = marks[0];
    set_limit(RLIM_INFINITY);
    mark_keeper(0);
    CHECK(limit() == RLIM_INFINITY);
    mark_started(); /* of nobody's */
    CHECK(limit() == RLIM_INFINITY);
    mark_keeper(mark);
    CHECK(limit() == (mark | KEEPER));
    mark_keeper(marks[1]); /* inside of another place */
    CHECK(limit() == (mark | KEEPER));
    mark_started();
    CHECK(limit() == mark);
    mark_started();
    CHECK(limit() == mark);
    mark_keeper(mark);
    CHECK(limit() == (mark | KEEPER));
    set_limit(1000001); /* the administrator's */
    mark_keeper(mark);
    CHECK(limit() == 1000001);
    mark_started();
    CHECK(limit() == 1000001);
}

static void a_limit_of_somebody_else_stays(void **state)
{
    (void)state;
    in_child(check_limit, NULL);
}

/* ---- orphans ---- */

static int told[2];

static _Noreturn void live(void)
{
    pid_t pid = getpid();
    alarm(2 * PATIENCE_MS / 1000);
    CHECK(write(told[1], &pid, sizeof pid) == sizeof pid);
    for (;;)
        pause();
}

static pid_t hear(void)
{
    pid_t pid = -1;
    struct pollfd p = {.fd = told[0], .events = POLLIN};
    CHECK(poll(&p, 1, PATIENCE_MS) == 1 && read(told[0], &pid, sizeof pid) == sizeof pid);
    return pid;
}

/* A keeper of that place, what it has started, and a child of that. */
static void start_family(unsigned long long mark, pid_t family[3])
{
    family[0] = fork();
    if (family[0] == 0) {
        mark_keeper(mark);
        if (fork() != 0)
            live();
        mark_started();
        if (fork() != 0)
            live();
        live();
    }
    for (int i = 0; i < 3; i++)
        hear();
    struct proc *list;
    CHECK(proc_descendants(family[0], &list) == 2);
    family[1] = list[0].pid;
    family[2] = list[1].pid;
    free(list);
}

/* As another process sees it, whose children they are not. */
static int orphans(unsigned long long mark, pid_t found[8])
{
    pid_t looker = fork();
    if (looker == 0) {
        struct proc *list;
        size_t n = mark_orphans(mark, &list);
        CHECK(mark != 0 || !list);
        for (size_t i = 0; i < n; i++)
            CHECK(write(told[1], &list[i].pid, sizeof list[i].pid) == sizeof list[i].pid);
        free(list);
        _exit((int)n);
    }
    int status;
    CHECK(waitpid(looker, &status, 0) == looker && WIFEXITED(status) && WEXITSTATUS(status) <= 8);
    for (int i = 0; i < WEXITSTATUS(status); i++)
        found[i] = hear();
    return WEXITSTATUS(status);
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    CHECK(waitpid(pid, NULL, 0) == pid);
}

static void check_orphans(void *arg)
{
    (void)arg;
    pid_t ours[3], theirs[3], found[8] = {0};
    set_limit(RLIM_INFINITY);
    CHECK(pipe2(told, O_CLOEXEC) == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
    start_family(marks[0], ours);
    start_family(marks[1], theirs);
    CHECK(orphans(marks[0], found) == 0); /* their keeper lives */
    end(theirs[0]);
    CHECK(orphans(marks[0], found) == 0);
    end(ours[0]);
    CHECK(orphans(marks[0], found) == 2 && found[0] == ours[1] && found[1] == ours[2]);
    CHECK(orphans(0, found) == 0);
    struct proc *list;
    CHECK(mark_orphans(marks[0], &list) == 0); /* one's own children are none */
    free(list);

    /* What has ended is none, and what is below it has another parent then. */
    kill(ours[1], SIGKILL);
    siginfo_t info;
    CHECK(waitid(P_PID, (id_t)ours[1], &info, WEXITED | WNOWAIT) == 0);
    CHECK(orphans(marks[0], found) == 1 && found[0] == ours[2]);
    end(ours[1]);

    /* A parent of the same place, started or a keeper, makes it none. */
    struct rlimit same = {marks[0] | KEEPER, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_RTTIME, &same) == 0);
    pid_t looked[8];
    int n = orphans(marks[0], looked);
    CHECK(n == 0);
    same.rlim_cur = marks[1];
    CHECK(setrlimit(RLIMIT_RTTIME, &same) == 0);
    CHECK(orphans(marks[0], found) == 1);
    end(ours[2]);
    end(theirs[1]);
    end(theirs[2]);
}

static void what_dead_keepers_leave_is_found(void **state)
{
    (void)state;
    in_child(check_orphans, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_mark_is_that_of_a_place),
        TEST(a_limit_of_somebody_else_stays),
        TEST(what_dead_keepers_leave_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
