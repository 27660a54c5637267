#include "support.h"

#include <dirent.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "buf.h"
#include "io.h"
#include "ipc.h"
#include "mem.h"
#include "version.h"

static char dir[64];
static int place_fd;

static int set_up(void **state)
{
    (void)state;
    umask(022);
    make_dir(dir);
    place_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return place_fd < 0 || chdir(dir) < 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(place_fd);
    assert_int_equal(chdir("/"), 0);
    remove_dir(dir);
    return 0;
}

static int listen_as(const char *owner)
{
    struct err err = {0};
    int fd = ipc_listen(place_fd, owner, &err);
    if (fd < 0)
        fail_msg("%s", err.msg);
    return fd;
}

/* A byte each way between a listening socket and a client. */
static void assert_reaches(int listener, int client)
{
    char c = 0;
    assert_true(client >= 0);
    int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(server >= 0);
    assert_int_equal(write(client, "q", 1), 1);
    assert_int_equal(read(server, &c, 1), 1);
    assert_int_equal(c, 'q');
    assert_int_equal(write(server, "a", 1), 1);
    assert_int_equal(read(client, &c, 1), 1);
    assert_int_equal(c, 'a');
    close(server);
    close(client);
}

static void assert_nobody(const char *owner, int error)
{
    unsigned before = open_descriptors();
    assert_int_equal(ipc_connect(place_fd, owner, IPC_WAIT_S), -1);
    assert_int_equal(errno, error);
    assert_int_equal(open_descriptors(), before);
}

/* ---- names ---- */

static void a_name_tells_build_and_container(void **state)
{
    (void)state;
    struct stat root;
    char name[IPC_NAME_MAX], want[200];
    assert_int_equal(stat("/", &root), 0);
    assert_int_equal(ipc_name(name, "BashSession_12"), 0);
    snprintf(want, sizeof want, "BashSession_12.%s.%llx-%llx", toolbox_build_id,
             (unsigned long long)root.st_dev, (unsigned long long)root.st_ino);
    assert_string_equal(name, want);
}

static void an_owner_is_a_plain_word(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    ".",   "..",       "a/b", "/a", "a.b",
                                      "a b", "a\n", "\xC3\xA9", "a:b", "*"};
    char name[IPC_NAME_MAX], owner[IPC_NAME_MAX + 1];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(ipc_name(name, bad[i]), -1);
        assert_nobody(bad[i], ENOENT);
        struct err err = {0};
        assert_int_equal(ipc_listen(place_fd, bad[i], &err), -1);
        assert_int_equal(err.code, ERR_INTERNAL);
        assert_false(ipc_exists(place_fd, bad[i]));
        ipc_unlink(place_fd, bad[i]);
    }
    memset(owner, 'a', sizeof owner);
    assert_int_equal(ipc_name(name, "x"), 0);
    char *suffix MEM_AUTO = mem_strdup(name + 1);
    for (size_t n = 1; n <= IPC_NAME_MAX; n++) {
        owner[n] = '\0';
        bool fits = ipc_name(name, owner) == 0;
        assert_int_equal(fits, n + strlen(suffix) < IPC_NAME_MAX);
        owner[n] = 'a';
    }
}

/* ---- listening and connecting ---- */

static void a_listener_is_reached(void **state)
{
    (void)state;
    char name[IPC_NAME_MAX], before[4096], after[4096];
    struct stat st;
    assert_non_null(getcwd(before, sizeof before));
    assert_nobody("server", ENOENT);
    int fd = listen_as("server");
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_int_equal(ipc_name(name, "server"), 0);
    assert_int_equal(fstatat(place_fd, name, &st, 0), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0600);
    int client = ipc_connect(place_fd, "server", IPC_WAIT_S);
    assert_true(fcntl(client, F_GETFD) & FD_CLOEXEC);
    assert_false(fcntl(client, F_GETFL) & O_NONBLOCK);
    assert_reaches(fd, client);
    assert_true(ipc_exists(place_fd, "server"));
    close(fd);
    assert_nobody("server", ECONNREFUSED);
    assert_true(ipc_exists(place_fd, "server"));
    ipc_unlink(place_fd, "server");
    assert_false(ipc_exists(place_fd, "server"));
    assert_nobody("server", ENOENT);
    assert_non_null(getcwd(after, sizeof after));
    assert_string_equal(before, after);
    assert_int_equal(umask(022), 022);
}

static void check_credentials(void *arg)
{
    int client = ipc_connect(place_fd, "server", IPC_WAIT_S);
    pid_t pid = 0;
    uid_t uid = 0;
    CHECK(client >= 0 && ipc_peer(client, &pid, &uid) == 0);
    CHECK(pid == *(pid_t *)arg && uid == geteuid());
}

static void the_peer_is_known(void **state)
{
    (void)state;
    int fd = listen_as("server");
    pid_t self = getpid(), pid;
    uid_t uid;
    in_child(check_credentials, &self);
    int server = accept(fd, NULL, NULL);
    assert_int_equal(ipc_peer(server, &pid, &uid), 0);
    assert_true(pid > 0 && pid != self);
    assert_int_equal(uid, geteuid());
    close(server);
    close(fd);
    assert_int_equal(ipc_peer(fd, &pid, &uid), -1);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(ipc_peer(ends[0], &pid, &uid), -1);
    close(ends[0]);
    close(ends[1]);
}

/* Paths of every length, also such as no socket address holds; those that differ at the end are different. */
static void the_directory_may_be_anywhere(void **state)
{
    (void)state;
    static const size_t lengths[] = {90, 107, 108, 150, 900, 2500};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct buf path BUF_AUTO = BUF_INIT;
        struct place p[2];
        int listeners[2];
        buf_adds(&path, dir);
        while (path.len + 12 < lengths[i])
            buf_adds(&path, "/\xE6\x97\xA5\xE6\x9C\xAC");
        buf_addc(&path, '/');
        while (path.len < lengths[i])
            buf_addc(&path, 'x');
        for (int k = 0; k < 2; k++) {
            path.data[path.len - 1] = (char)('a' + k);
            assert_int_equal(place_enter(&p[k], path.data, true, NULL), 0);
            listeners[k] = ipc_listen(p[k].fd, "server", NULL);
            assert_true(listeners[k] >= 0);
        }
        for (int k = 0; k < 2; k++) {
            assert_reaches(listeners[k], ipc_connect(p[k].fd, "server", IPC_WAIT_S));
            assert_int_equal(accept(listeners[!k], NULL, NULL), -1);
        }
        for (int k = 0; k < 2; k++) {
            close(listeners[k]);
            place_release(&p[k]);
        }
    }
}

/* ---- what is in the way ---- */

static void leftovers_are_replaced(void **state)
{
    (void)state;
    char name[IPC_NAME_MAX];
    assert_int_equal(ipc_name(name, "server"), 0);
    int fd = open("precious", O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    for (int what = 0; what < 4; what++) {
        if (what == 0)
            close(listen_as("server")); /* a dead one's socket */
        else if (what == 1)
            close(open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600));
        else
            assert_int_equal(symlink(what == 2 ? "precious" : "nowhere", name), 0);
        if (what == 1 || what == 2)
            assert_nobody("server", ECONNREFUSED);
        fd = listen_as("server");
        assert_reaches(fd, ipc_connect(place_fd, "server", IPC_WAIT_S));
        close(fd);
        ipc_unlink(place_fd, "server");
    }
    struct stat st;
    assert_int_equal(stat("precious", &st), 0);
    assert_int_equal(st.st_size, 1);
    assert_int_equal(access("nowhere", F_OK), -1);
}

static unsigned entries(void)
{
    unsigned n = 0;
    int fd = dup(place_fd);
    DIR *d = fdopendir(fd);
    rewinddir(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void a_directory_in_the_way_is_named(void **state)
{
    (void)state;
    char name[IPC_NAME_MAX];
    struct err err = {0};
    assert_int_equal(ipc_name(name, "server"), 0);
    assert_int_equal(mkdir(name, 0700), 0);
    unsigned before = open_descriptors();
    assert_int_equal(ipc_listen(place_fd, "server", &err), -1);
    assert_int_equal(err.code, ERR_TOOL);
    assert_non_null(strstr(err.msg, name));
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(entries(), 1); /* nothing else is left */
}

static void check_read_only(void *arg)
{
    (void)arg;
    struct err err = {0};
    own_mounts();
    CHECK(mkdir("ro", 0700) == 0);
    if (mount("none", "ro", "tmpfs", MS_RDONLY, NULL) < 0)
        cannot("no read-only file system");
    int fd = open("ro", O_RDONLY | O_DIRECTORY);
    unsigned before = open_descriptors();
    CHECK(ipc_listen(fd, "server", &err) < 0 && err.code == ERR_TOOL);
    CHECK(strstr(err.msg, "Read-only") && open_descriptors() == before);
    close(fd);
    CHECK(ipc_listen(fd, "server", &err) < 0 && ipc_connect(fd, "server", IPC_WAIT_S) < 0);
    CHECK(access("ro/..", F_OK) == 0); /* the working directory is what it was */
}

static void nowhere_to_listen_is_an_error(void **state)
{
    (void)state;
    in_child(check_read_only, NULL);
}

/* Two containers may share a directory, and have processes of the same number: what is not finished has a
 * name that no other container uses. */
static void an_unfinished_socket_has_a_name_of_its_own(void **state)
{
    (void)state;
    char name[IPC_NAME_MAX];
    union {
        struct inotify_event event;
        char bytes[4096];
    } seen;
    assert_int_equal(ipc_name(name, "server"), 0);
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch < 0 || inotify_add_watch(watch, dir, IN_CREATE) < 0) {
        skip_because("no inotify");
    }
    int fd = listen_as("server");
    assert_true(read(watch, &seen, sizeof seen) > 0);
    assert_non_null(strstr(seen.event.name, strchr(name, '.')));
    assert_string_not_equal(seen.event.name, name);
    close(watch);
    close(fd);
    assert_int_equal(entries(), 1);
}

/* ---- who may be there ---- */

static void listen_as_stranger(void *arg)
{
    (void)arg;
    if (geteuid() != 0)
        cannot("only root can become somebody else");
    CHECK(chmod(dir, 0777) == 0);
    int up[2];
    CHECK(pipe(up) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        become_stranger();
        int fd = ipc_listen(place_fd, "server", NULL);
        CHECK(fd >= 0 && fchmodat(place_fd, ".", 0777, 0) < 0 && write(up[1], "", 1) == 1);
        pause();
    }
    char c;
    close(up[1]);
    CHECK(read(up[0], &c, 1) == 1);
    CHECK(ipc_connect(place_fd, "server", IPC_WAIT_S) == -1 && errno == EPERM);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void another_users_socket_is_not_talked_to(void **state)
{
    (void)state;
    in_child(listen_as_stranger, NULL);
}

static void check_other_pid_namespace(void *arg)
{
    (void)arg;
    if (unshare(CLONE_NEWPID) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
        cannot("no pid namespace");
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(getpid() == 1);
        int client = ipc_connect(place_fd, "server", IPC_WAIT_S);
        CHECK(client == -1 && errno == EPERM);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void another_containers_socket_is_not_talked_to(void **state)
{
    (void)state;
    int fd = listen_as("server");
    in_child(check_other_pid_namespace, NULL);
    close(fd);
}

static void check_lost_directory(void *arg)
{
    (void)arg;
    CHECK(mkdir("gone", 0700) == 0 && chdir("gone") == 0 && rmdir("../gone") == 0);
    int fd = ipc_connect(place_fd, "server", IPC_WAIT_S);
    CHECK(fd >= 0);
    CHECK(ipc_listen(place_fd, "other", NULL) >= 0 && ipc_exists(place_fd, "other"));
    CHECK(open("x", O_CREAT | O_WRONLY, 0600) < 0 && errno == ENOENT); /* still in the one that is gone */
}

static void a_working_directory_that_is_gone_does_no_harm(void **state)
{
    (void)state;
    int fd = listen_as("server");
    in_child(check_lost_directory, NULL);
    close(fd);
}

static void check_unsearchable(void *arg)
{
    (void)arg;
    if (geteuid() != 0)
        cannot("only root can become somebody else");
    CHECK(mkdir("locked", 0700) == 0 && chdir("locked") == 0);
    CHECK(chown(dir, STRANGER, STRANGER) == 0);
    become_stranger();
    int fd = ipc_listen(place_fd, "server", NULL);
    CHECK(fd >= 0 && ipc_connect(place_fd, "server", IPC_WAIT_S) >= 0);
    struct stat here, root; /* there is no way back; in the place it would be in everybody's way */
    CHECK(stat(".", &here) == 0 && stat("/", &root) == 0 && here.st_ino == root.st_ino);
}

static void nor_one_that_is_closed_to_the_user(void **state)
{
    (void)state;
    in_child(check_unsearchable, NULL);
}

/* ---- looking around ---- */

static void check_find(void *arg)
{
    if (geteuid() != 0)
        cannot("only root has its directories where a test can make them");
    struct place p;
    enter_root(arg);
    unsigned before = open_descriptors();
    CHECK(ipc_find(&p, "server") == -1 && p.fd == -1 && !p.path);
    CHECK(open_descriptors() == before && access("/run", F_OK) < 0); /* looking makes nothing */
    static const char *const places[] = {"/run/toolbox", "/tmp/.toolbox-0", "/var/tmp/.toolbox-0"};
    for (size_t i = 0; i < 3; i++) {
        CHECK(place_enter(&p, places[i], true, NULL) == 0);
        int fd = ipc_listen(p.fd, "server", NULL);
        CHECK(fd >= 0);
        if (i < 2)
            close(fd); /* left by a dead one */
        place_release(&p);
    }
    CHECK(chmod("/tmp/.toolbox-0", 0755) == 0);
    int fd = ipc_find(&p, "server");
    CHECK(fd >= 0 && strcmp(p.path, "/var/tmp/.toolbox-0") == 0 && p.fd >= 0);
    close(fd);
    place_release(&p);
    before = open_descriptors();
    setenv("TOOLBOX_DIR", "/run/toolbox", 1);
    CHECK(ipc_find(&p, "server") == -1 && open_descriptors() == before);
}

static void a_live_owner_is_found_wherever_it_is(void **state)
{
    (void)state;
    in_child(check_find, dir);
}

static void note_owner(void *arg, const char *owner)
{
    buf_addf(arg, "%s,", owner);
}

static void unlink_owner(void *arg, const char *owner)
{
    (void)arg;
    ipc_unlink(place_fd, owner);
}

static void only_our_own_build_and_container_are_listed(void **state)
{
    (void)state;
    struct buf owners BUF_AUTO = BUF_INIT;
    ipc_each(place_fd, note_owner, &owners);
    assert_int_equal(owners.len, 0);
    close(listen_as("B_1"));
    static const char *const others[] = {"server.0123456789abcdef.1-1", "notes", ".lock", "x."};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        close(open(others[i], O_WRONLY | O_CREAT, 0600));
    char name[IPC_NAME_MAX];
    ipc_name(name, "B");
    close(open(strchr(name, '.'), O_WRONLY | O_CREAT, 0600)); /* of nobody */
    char unfinished[IPC_NAME_MAX + 1];
    snprintf(unfinished, sizeof unfinished, ".%s", name);
    close(open(unfinished, O_WRONLY | O_CREAT, 0600));
    ipc_each(place_fd, note_owner, &owners);
    ipc_each(place_fd, note_owner, &owners); /* the descriptor's own position does not matter */
    assert_string_equal(owners.data, "B_1,B_1,");
    for (int i = 0; i < 200; i++) {
        char owner[16];
        snprintf(owner, sizeof owner, "C_%d", i);
        ipc_name(name, owner);
        close(open(name, O_WRONLY | O_CREAT, 0600));
    }
    ipc_each(place_fd, unlink_owner, NULL); /* what is listed may go meanwhile */
    buf_truncate(&owners, 0);
    ipc_each(place_fd, note_owner, &owners);
    assert_int_equal(owners.len, 0);
    assert_int_equal(entries(), 6);
    ipc_each(-1, note_owner, &owners);
}

/* All that is ours goes, also what is unfinished; of others nothing. */
static void clearing_takes_only_our_own(void **state)
{
    (void)state;
    static const char *const owners[] = {"server", "server_1", "B", "B_1"};
    char name[IPC_NAME_MAX], unfinished[IPC_NAME_MAX + 1];
    for (size_t i = 0; i < 4; i++)
        close(listen_as(owners[i]));
    ipc_name(name, "server");
    snprintf(unfinished, sizeof unfinished, ".%s", name);
    close(open(unfinished, O_WRONLY | O_CREAT, 0600));
    close(open("server.0123456789abcdef.1-1", O_WRONLY | O_CREAT, 0600));
    close(open(".lock", O_WRONLY | O_CREAT, 0600));
    ipc_clear(place_fd);
    assert_int_equal(entries(), 2);
    assert_int_equal(access(".lock", F_OK), 0);
}

/* One that takes no connections, because it is stopped or stuck, holds nobody for ever. */
static void a_full_queue_is_waited_for_and_no_longer(void **state)
{
    (void)state;
    enum { MOST = 5000 };
    int fd = listen_as("server"), n = 0, one;
    static int clients[MOST];
    struct rlimit limit = {MOST + 100, MOST + 100};
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        limit.rlim_cur = limit.rlim_cur > 200 ? limit.rlim_cur - 100 : 100;
    while (n < MOST && n < (int)limit.rlim_cur - 100 && (one = ipc_connect(place_fd, "server", 0)) >= 0) {
        assert_true(fcntl(one, F_GETFL) & O_NONBLOCK);
        clients[n++] = one;
    }
    int failed = errno,
        blocked = n < MOST && n < (int)limit.rlim_cur - 100 ? ipc_connect(place_fd, "server", 1) : -2;
    int after = errno;
    for (int i = 0; i < n; i++)
        close(clients[i]);
    close(fd);
    if (blocked == -2) {
        skip_because("the queue is longer than there are descriptors");
    }
    assert_int_equal(failed, EAGAIN);
    assert_int_equal(blocked, -1);
    assert_int_equal(after, EAGAIN);
}

static void no_descriptor_is_left_open(void **state)
{
    (void)state;
    struct buf owners BUF_AUTO = BUF_INIT;
    unsigned before = open_descriptors();
    for (int i = 0; i < 50; i++) {
        int fd = listen_as("server"), client = ipc_connect(place_fd, "server", IPC_WAIT_S);
        assert_true(client >= 0);
        close(fd);
        close(client);
        ipc_connect(place_fd, "server", IPC_WAIT_S);
        ipc_connect(place_fd, "nobody", IPC_WAIT_S);
        ipc_each(place_fd, note_owner, &owners);
    }
    assert_int_equal(open_descriptors(), before);
}

/* ---- hidden ones ---- */

static void a_hidden_socket_is_nobodys_until_it_is_shown(void **state)
{
    (void)state;
    struct err err = {0};
    char name[1 + IPC_NAME_MAX], plain[IPC_NAME_MAX];
    assert_int_equal(ipc_hidden_name(name, "Pool-1"), 0);
    assert_int_equal(ipc_name(plain, "Pool-1"), 0);
    assert_int_equal(name[0], '.');
    assert_string_equal(name + 1, plain);
    assert_false(ipc_is_hidden(place_fd, "Pool-1"));
    close(open(name, O_WRONLY | O_CREAT, 0600)); /* left by a killed one */
    int fd = ipc_listen_hidden(place_fd, "Pool-1", &err);
    assert_true(fd >= 0 && ipc_is_hidden(place_fd, "Pool-1"));
    assert_nobody("Pool-1", ENOENT);
    assert_int_equal(ipc_show(place_fd, "Pool-1", "Job_7", &err), 0);
    assert_false(ipc_is_hidden(place_fd, "Pool-1"));
    assert_reaches(fd, ipc_connect(place_fd, "Job_7", IPC_WAIT_S));
    ipc_hide(place_fd, "Job_7", "bad name");
    ipc_hide(place_fd, "bad name", "Pool-1");
    assert_true(ipc_exists(place_fd, "Job_7"));
    ipc_hide(place_fd, "Job_7", "Pool-2");
    assert_nobody("Job_7", ENOENT);
    assert_true(ipc_is_hidden(place_fd, "Pool-2") && !ipc_is_hidden(place_fd, "bad name"));
    ipc_unlink_hidden(place_fd, "bad name");
    ipc_unlink_hidden(place_fd, "Pool-2");
    assert_false(ipc_is_hidden(place_fd, "Pool-2"));
    assert_int_equal(entries(), 0);
    close(fd);
}

static void what_can_not_be_shown_is_an_error(void **state)
{
    (void)state;
    static const char *const bad[][2] = {{"bad name", "Job_7"}, {"Pool-1", "bad name"}};
    struct err err = {0};
    int fd = ipc_listen_hidden(place_fd, "Pool-1", &err);
    for (size_t i = 0; i < 2; i++) {
        err = (struct err){0};
        assert_int_equal(ipc_show(place_fd, bad[i][0], bad[i][1], &err), -1);
        assert_int_equal(err.code, ERR_INTERNAL);
        assert_true(ipc_is_hidden(place_fd, "Pool-1"));
    }
    assert_int_equal(ipc_show(place_fd, "Pool-2", "Job_7", &err), -1);
    assert_int_equal(err.code, ERR_TOOL);
    assert_int_equal(ipc_listen_hidden(place_fd, "bad name", &err), -1);
    assert_int_equal(err.code, ERR_INTERNAL);
    close(fd);
}

static void check_no_socket(void *arg)
{
    struct err err = {0};
    unsigned before = open_descriptors();
    refuse_call(arg ? SYS_listen : SYS_socket, EACCES);
    CHECK(ipc_listen(place_fd, "server", &err) == -1 && err.code == ERR_TOOL);
    CHECK(strstr(err.msg, "Permission denied") && open_descriptors() == before && entries() == 0);
    if (!arg)
        CHECK(ipc_connect(place_fd, "server", IPC_WAIT_S) == -1 && errno == EACCES);
}

static void a_refused_socket_leaves_nothing(void **state)
{
    (void)state;
    in_child(check_no_socket, NULL);
    in_child(check_no_socket, dir);
}

static void check_next_owner(void *arg)
{
    const int *fd = arg;
    pid_t pid = 0;
    uid_t uid;
    CHECK(ipc_listen_again(*fd) == 0);
    int client = ipc_connect(place_fd, "server", IPC_WAIT_S);
    CHECK(client >= 0 && ipc_peer(client, &pid, &uid) == 0 && pid == getpid());
}

static void a_socket_goes_from_one_process_to_the_next(void **state)
{
    (void)state;
    char c;
    int fd = listen_as("server"), early[3];
    for (int i = 0; i < 3; i++)
        early[i] = ipc_connect(place_fd, "server", IPC_WAIT_S);
    in_child(check_next_owner, &fd);
    unsigned before = open_descriptors();
    ipc_refuse_queued(fd);
    assert_int_equal(open_descriptors(), before);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(read(early[i], &c, 1), 0);
        close(early[i]);
    }
    assert_reaches(fd, ipc_connect(place_fd, "server", IPC_WAIT_S)); /* who comes now is served */
    assert_int_equal(ipc_listen_again(place_fd), -1);
    close(fd);
}

static void check_home(void *arg)
{
    (void)arg;
    CHECK(fchdir(place_fd) == 0);
    ipc_stay_in(place_fd);
    refuse_call(SYS_fchdir, EACCES); /* nobody goes anywhere */
    int fd = ipc_listen(place_fd, "home", NULL);
    CHECK(fd >= 0 && ipc_connect(place_fd, "home", IPC_WAIT_S) >= 0);
    int other = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(ipc_connect(other, "home", IPC_WAIT_S) == -1 && errno == EACCES);
}

static void who_stays_in_the_place_needs_not_go_there(void **state)
{
    (void)state;
    in_child(check_home, NULL);
}

/* ---- names of others ---- */

#define BUILD "0123456789abcdef"

static void names_of_other_builds_are_told_apart(void **state)
{
    (void)state;
    char own[IPC_NAME_MAX], owner[IPC_NAME_MAX], build[BUILD_ID_SIZE], name[200];
    assert_int_equal(ipc_name(own, "Job_7"), 0);
    const char *root = strrchr(own, '.');
    assert_int_equal(ipc_name_in(name, "Job_7", BUILD), 0);
    assert_true(ipc_split(name, owner, build));
    assert_string_equal(owner, "Job_7");
    assert_string_equal(build, BUILD);
    assert_true(ipc_is_file(name) && ipc_is_file(own) && !ipc_is_file(root) && !ipc_is_file("Job_7"));
    assert_false(ipc_split(own, owner, build)); /* this build's */

    static const char *const bad[] = {
        "Job_7.0123456789abcde", "Job_7.0123456789abcdeg", "Job_70123456789abcdef",  "." BUILD, BUILD,
        ".Job_7." BUILD,         "Job_7.0123456789ABCDEF", "Job_7.00123456789abcdef"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(name, sizeof name, "%s%s", bad[i], root);
        assert_false(ipc_split(name, owner, build));
    }
    assert_false(ipc_split("Job_7." BUILD ".1-1", owner, build)); /* another container's */
    assert_false(ipc_split("Job_7", owner, build));
    char longest[IPC_NAME_MAX + 1];
    memset(longest, 'a', sizeof longest);
    for (int more = 0; more < 2; more++) {
        size_t n = IPC_NAME_MAX - 1 - strlen("." BUILD) - strlen(root) + (size_t)more;
        snprintf(name, sizeof name, "%.*s.%s%s", (int)n, longest, BUILD, root);
        assert_int_equal(ipc_split(name, owner, build), !more);
    }
    assert_true(ipc_is_keeper("Job_7") && ipc_is_keeper("server_1") && ipc_is_keeper("once"));
    assert_false(ipc_is_keeper("server") || ipc_is_keeper("once-1"));
}

static void files_are_listed_by_whose_they_are(void **state)
{
    (void)state;
    struct buf names BUF_AUTO = BUF_INIT, want BUF_AUTO = BUF_INIT;
    char own[IPC_NAME_MAX], other[IPC_NAME_MAX], hidden[1 + IPC_NAME_MAX];
    assert_int_equal(ipc_name(own, "Job_7"), 0);
    assert_int_equal(ipc_name_in(other, "Job_7", BUILD), 0);
    assert_int_equal(ipc_hidden_name(hidden, "Pool-1"), 0);
    const char *const files[] = {own, other, hidden, "notes"};
    for (size_t i = 0; i < 4; i++)
        close(open(files[i], O_WRONLY | O_CREAT, 0600));
    ipc_each_other(place_fd, note_owner, &names);
    buf_addf(&want, "%s,", other);
    assert_string_equal(buf_str(&names), buf_str(&want));
    buf_truncate(&names, 0);
    ipc_each_file(place_fd, ".Pool-", note_owner, &names);
    ipc_each_file(place_fd, ".Poor-", note_owner, &names);
    ipc_each_file(place_fd, "Job_", note_owner, &names);
    buf_truncate(&want, 0);
    buf_addf(&want, "%s,%s,", hidden, own);
    assert_string_equal(buf_str(&names), buf_str(&want));
    assert_int_equal(ipc_connect_file(place_fd, "notes", 1), -1);
}

#define ipc_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    unsetenv("TOOLBOX_DIR");
    unsetenv("INSPECT_SANDBOX_TOOLS_DIR");
    const struct CMUnitTest tests[] = {
        ipc_test(a_name_tells_build_and_container),
        ipc_test(an_owner_is_a_plain_word),
        ipc_test(a_listener_is_reached),
        ipc_test(the_peer_is_known),
        ipc_test(the_directory_may_be_anywhere),
        ipc_test(leftovers_are_replaced),
        ipc_test(a_directory_in_the_way_is_named),
        ipc_test(nowhere_to_listen_is_an_error),
        ipc_test(an_unfinished_socket_has_a_name_of_its_own),
        ipc_test(another_users_socket_is_not_talked_to),
        ipc_test(another_containers_socket_is_not_talked_to),
        ipc_test(a_working_directory_that_is_gone_does_no_harm),
        ipc_test(nor_one_that_is_closed_to_the_user),
        ipc_test(a_live_owner_is_found_wherever_it_is),
        ipc_test(only_our_own_build_and_container_are_listed),
        ipc_test(clearing_takes_only_our_own),
        ipc_test(a_full_queue_is_waited_for_and_no_longer),
        ipc_test(no_descriptor_is_left_open),
        ipc_test(a_hidden_socket_is_nobodys_until_it_is_shown),
        ipc_test(what_can_not_be_shown_is_an_error),
        ipc_test(a_refused_socket_leaves_nothing),
        ipc_test(a_socket_goes_from_one_process_to_the_next),
        ipc_test(who_stays_in_the_place_needs_not_go_there),
        ipc_test(names_of_other_builds_are_told_apart),
        ipc_test(files_are_listed_by_whose_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
