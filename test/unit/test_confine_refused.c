/* What a confined program says when it meets a wall, and what isn't that. '@' stands for a folder of the
 * test's own. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

#include "buf.h"
#include "confine.h"
#include "io.h"

static char folder[] = "/tmp/test_confine_refused.XXXXXX";
static long long group = -1; /* the program's; -1: one of the same number as its user */

static void put_in_folder(const char *text, struct buf *out)
{
    for (; *text; text++)
        if (*text == '@')
            buf_adds(out, folder);
        else
            buf_addc(out, *text);
}

static void make(const char *name, const char *mode)
{
    struct buf path BUF_AUTO = BUF_INIT;
    put_in_folder(name, &path);
    int fd FD_AUTO = open(buf_str(&path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && fchmod(fd, (mode_t)strtoul(mode, NULL, 8)) == 0);
}

static int set_up(void **state)
{
    static const char *const dirs[] = {"@/w", "@/h", "@/r"};
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    for (size_t i = 0; i < 3; i++) {
        struct buf path BUF_AUTO = BUF_INIT;
        put_in_folder(dirs[i], &path);
        if (mkdir(buf_str(&path), 0755) < 0)
            return -1;
    }
    make("@/f", "0644");
    make("@/open", "0666");
    make("@/closed", "0444");
    make("@/group", "0664");
    make("@/x", "0755");
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"@/f", "@/open", "@/closed", "@/group", "@/x",
                                        "@/w", "@/h",    "@/r",      "@"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct buf path BUF_AUTO = BUF_INIT;
        put_in_folder(names[i], &path);
        remove(buf_str(&path));
    }
    return 0;
}

/* `walls`: letters of what is confined: Write (@/w stays), All of it may be written to, Hide (@/h), Read (@/r
 * stays), eXecute (nothing), Network. */
static void check(const char *walls, unsigned uid, const char *text, const char *said)
{
    struct buf whole BUF_AUTO = BUF_INIT;
    struct buf wanted BUF_AUTO = BUF_INIT;
    struct buf w BUF_AUTO = BUF_INIT;
    struct buf h BUF_AUTO = BUF_INIT;
    struct buf r BUF_AUTO = BUF_INIT;
    put_in_folder("@/w", &w);
    put_in_folder("@/h", &h);
    put_in_folder("@/r", &r);
    char all[] = "/", *lists[4][2] = {{w.data, NULL}, {h.data, NULL}, {r.data, NULL}, {all, NULL}};
    struct confine_report report = {.uid = uid, .gid = group >= 0 ? (unsigned)group : uid};
    memcpy(report.cwd, folder, sizeof folder);
    struct confine c = {.preset = "preset", .report = &report};
    c.wanted[CONFINE_WRITE] = strchr(walls, 'W') || strchr(walls, 'A');
    c.wanted[CONFINE_HIDE] = strchr(walls, 'H');
    c.wanted[CONFINE_READ] = strchr(walls, 'R');
    c.wanted[CONFINE_EXECUTE] = strchr(walls, 'X');
    c.wanted[CONFINE_NETWORK] = strchr(walls, 'N');
    c.paths[CONFINE_WRITE] = strchr(walls, 'A') ? lists[3] : c.wanted[CONFINE_WRITE] ? lists[0] : NULL;
    c.paths[CONFINE_HIDE] = c.wanted[CONFINE_HIDE] ? lists[1] : NULL;
    c.paths[CONFINE_READ] = c.wanted[CONFINE_READ] ? lists[2] : NULL;
    put_in_folder(text, &whole);
    put_in_folder(said ? said : "", &wanted);
    struct confine_refusal refusal = {0};
    bool found = confine_refused(&c, NULL, buf_str(&whole), whole.len, &refusal);
    static const struct {
        const char *words;
        enum confine_what what;
    } kinds[] = {{"Read-only", CONFINE_WRITE},
                 {"Hidden", CONFINE_HIDE},
                 {"Not to be run", CONFINE_EXECUTE},
                 {"No network", CONFINE_NETWORK}};
    for (size_t i = 0; found && i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(refusal.said, kinds[i].words, strlen(kinds[i].words)) == 0)
            assert_int_equal(refusal.what, kinds[i].what);
    if (found != (said != NULL) || strcmp(refusal.said, buf_str(&wanted)) != 0)
        fail_msg("%s: '%s', not '%s'", buf_str(&whole), found ? refusal.said : "nothing", buf_str(&wanted));
}

#define READ_ONLY(path) "Read-only: " path " (policy preset)"

static void files_that_cannot_be_written(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"sh: 1: cannot create @/f: Permission denied", READ_ONLY("@/f")},
        {"touch: cannot touch '@/f': Read-only file system", READ_ONLY("@/f")},
        {"touch: cannot touch '@/new': Operation not permitted", READ_ONLY("@/new")},
        {"touch: cannot touch '@/w/f': Permission denied", NULL},
        {"touch: cannot touch '@/wx': Permission denied", READ_ONLY("@/wx")},
        {"rm: cannot remove 'f': Read-only file system", READ_ONLY("@/f")},
        {"Error: open \"@/f d\": permission denied", READ_ONLY("@/f d")},
        {"Error: open `@/f': permission denied", READ_ONLY("@/f")},
        {"Error: open (@/f): EACCES", READ_ONLY("@/f")},
        {"Error: open @/f, EROFS", READ_ONLY("@/f")},
        {"Error: open @/f:12: EPERM", READ_ONLY("@/f")},
        {"touch: cannot touch \xe2\x80\x98@/f\xe2\x80\x99: Read-only file system", READ_ONLY("@/f")},
        {"bash: f: Permission denied", READ_ONLY("@/f")},
        {"bash: line 1: f: Permission denied", READ_ONLY("@/f")},
        {"bash: none/f: Read-only file system", READ_ONLY("none/f")},
        {"bash: none/f: Permission denied", NULL},
        {"bash: 9: Read-only file system", NULL},
        {"f: Permission denied", NULL},
        {"  f: Permission denied", NULL},
        {"@/f is there", NULL},
        {"", NULL},
        {"well\nbash: f: Permission denied\nwell", READ_ONLY("@/f")},
        {"bash: f: Permission denied\nbash: open: Permission denied\n", READ_ONLY("@/open")},
        {"bash: f\n: Permission denied", NULL},
        {"a\xe2\x80: '@/f': Read-only file system", READ_ONLY("@/f")},
        {"bash: /dev/null: Permission denied", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check("W", 0, cases[i][0], cases[i][1]);
}

static void other_walls(void **state)
{
    (void)state;
    check("WH", 0, "cat: '@/h/x': Permission denied", "Hidden: @/h/x (policy preset)");
    check("W", 0, "cat: '@/f': EROFS\ncat: '@/h': nothing", READ_ONLY("@/f"));
    check("H", 0, "cat: '@/f': Permission denied", NULL);
    check("A", 0, "touch: '@/f': Permission denied", NULL);
    check("R", 0, "cat: '@/f': Permission denied", "Not to be read: @/f (policy preset)");
    check("R", 0, "cat: '@/f': Read-only file system", NULL);
    check("R", 0, "cat: '@/r/f': Permission denied", NULL);
    check("RW", 0, "cat: '@/w/f': Permission denied", NULL);
    check("X", 0, "bash: '@/x': Permission denied", "Not to be run: @/x (policy preset)");
    check("X", 0, "bash: '@/x': Read-only file system", NULL);
    check("X", 0, "bash: '@/f': Permission denied", NULL);
    check("X", 0, "bash: '@/w': Permission denied", NULL);
}

static void networks(void **state)
{
    static const char none[] = "No network (policy preset)";
    (void)state;
    check("N", 0, "curl: (6) Could not resolve host: x", none);
    check("", 0, "curl: (6) Could not resolve host: x", NULL);
    check("N", 0, "socket\nfailed: Operation not permitted", none);
    check("N", 0, "file: Operation not permitted", NULL);
    check("N", 0, "getaddrinfo ENOTFOUND x", none);
    check("WN", 0, "connect to '@/f': Permission denied", READ_ONLY("@/f"));
    check("WN", 0, "connect to '@/w/f': Permission denied", none);
}

/* What modes would refuse as well is no wall's. */
static void modes(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(stat(folder, &st), 0);
    unsigned other = st.st_uid + 4711;
    check("W", other, "touch: '@/f': Permission denied", NULL);
    check("W", other, "touch: '@/open': Permission denied", READ_ONLY("@/open"));
    check("W", other, "touch: '@/closed': Permission denied", NULL);
    check("W", other, "touch: '@/group': Permission denied", NULL);
    group = st.st_gid;
    check("W", other, "touch: '@/group': Permission denied", READ_ONLY("@/group"));
    group = -1;
    if (st.st_uid != 0) {
        check("W", st.st_uid, "touch: '@/f': Permission denied", READ_ONLY("@/f"));
        check("W", st.st_uid, "touch: '@/closed': Permission denied", NULL);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_that_cannot_be_written),
        cmocka_unit_test(other_walls),
        cmocka_unit_test(networks),
        cmocka_unit_test(modes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
