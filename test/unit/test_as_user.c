/* Work that is done as another user, who may stop it. */
#include "support.h"

#include <sys/mman.h>

#include "as_user.h"
#include "io.h"

static struct seen {
    pid_t pid;
    uid_t real, effective, saved;
    int calls, n_groups;
} * seen; /* shared with what is started */

static int set_up(void **state)
{
    (void)state;
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return seen == MAP_FAILED ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    return munmap(seen, sizeof *seen);
}

static void look(void *arg)
{
    if (arg != &seen)
        return;
    seen->pid = getpid();
    seen->n_groups = getgroups(0, NULL);
    if (getresuid(&seen->real, &seen->effective, &seen->saved) == 0)
        seen->calls++;
}

static void look_and_hang(void *arg)
{
    look(arg);
    for (;;)
        pause();
}

static bool has_no_children(void)
{
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
}

static void check_oneself(void *arg)
{
    (void)arg;
    unsigned before = open_descriptors();
    as_user(geteuid(), PATIENCE_MS, look, &seen);
    CHECK(seen->calls == 1 && seen->pid != getpid() && seen->effective == geteuid());
    CHECK(has_no_children() && open_descriptors() == before);
}

static void it_is_done_in_a_process_of_its_own(void **state)
{
    (void)state;
    in_child(check_oneself, NULL);
}

static void check_another(void *arg)
{
    (void)arg;
    if (geteuid() != 0)
        cannot("only root can become somebody else");
    as_user(STRANGER, PATIENCE_MS, look, &seen);
    CHECK(seen->calls == 1 && seen->n_groups <= 1);
    CHECK(seen->real == STRANGER && seen->effective == STRANGER && seen->saved == STRANGER);
    CHECK(has_no_children());
}

static void it_has_the_rights_of_that_user(void **state)
{
    (void)state;
    in_child(check_another, NULL);
}

static void check_no_rights(void *arg)
{
    (void)arg;
    become_stranger();
    as_user(STRANGER + 1, PATIENCE_MS, look, &seen);
    CHECK(seen->calls == 0 && has_no_children());
}

static void who_can_not_become_him_does_nothing(void **state)
{
    (void)state;
    in_child(check_no_rights, NULL);
}

static void check_limit(void *arg)
{
    (void)arg;
    unsigned before = open_descriptors();
    as_user(geteuid(), 500, look_and_hang, &seen);
    CHECK(seen->calls <= 1); /* on a machine that is busy it has not even begun */
    CHECK(has_no_children() && open_descriptors() == before);
}

static void endless_work_is_ended(void **state)
{
    (void)state;
    in_child(check_limit, NULL);
}

static void check_poverty(void *arg)
{
    unsigned before = open_descriptors();
    if (arg) {
        int next = dup(0);
        struct rlimit one = {(rlim_t)next + 1, (rlim_t)next + 1}; /* where a pipe has two */
        close(next);
        CHECK(setrlimit(RLIMIT_NOFILE, &one) == 0);
    } else {
        refuse_call(SYS_clone, EAGAIN);
        refuse_call(SYS_clone3, EAGAIN);
#ifdef SYS_fork
        refuse_call(SYS_fork, EAGAIN);
#endif
    }
    as_user(geteuid(), PATIENCE_MS, look, &seen);
    CHECK(seen->calls == 0);
    CHECK(open_descriptors() == before);
}

static void without_a_pipe_or_a_process_nothing_is_done(void **state)
{
    (void)state;
    in_child(check_poverty, &seen);
    in_child(check_poverty, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_done_in_a_process_of_its_own),          TEST(it_has_the_rights_of_that_user),
        TEST(who_can_not_become_him_does_nothing),         TEST(endless_work_is_ended),
        TEST(without_a_pipe_or_a_process_nothing_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
