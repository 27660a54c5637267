/* Injection without a target: what is said to it, and what is made of its answers. */
#include "support.h"

#include "host/inject/argv.h"
#include "host/inject/open_in.h"
#include "safe_path.h"
#include "host/inject/recon.h"
#include "host/inject/script.h"
#include "host/inject/target.h"
#include "host/inject/transport.h"
#include "io.h"
#include "mem.h"

/* ---- words ---- */

static void words_are_those_of_a_shell(void **state)
{
    (void)state;
    struct argv a ARGV_AUTO = {0};
    assert_int_equal(argv_split(&a, " one 'two three'  \"four \\\"$x\\\"\" fi\\ ve '' a'b'c ", NULL), 0);
    const char *const wanted[] = {"one", "two three", "four \"$x\"", "fi ve", "", "abc"};
    assert_int_equal(a.n, 6);
    for (size_t i = 0; i < a.n; i++)
        assert_string_equal(a.words[i], wanted[i]);
}

static void an_open_quote_is_refused(void **state)
{
    (void)state;
    struct argv a ARGV_AUTO = {0};
    struct err err;
    assert_int_equal(argv_split(&a, "one 'two", &err), -1);
    assert_int_equal(err.code, ERR_PARAMS);
}

static void what_is_quoted_is_read_back(void **state)
{
    (void)state;
    const char *const words[] = {"plain", "it's", "a b\"c\\d$e`f`", "'", ""};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct argv a ARGV_AUTO = {0};
        struct buf text BUF_AUTO = BUF_INIT;
        argv_quote(&text, words[i]);
        assert_int_equal(argv_split(&a, buf_str(&text), NULL), 0);
        assert_int_equal(a.n, 1);
        assert_string_equal(a.words[0], words[i]);
    }
}

/* ---- targets ---- */

static void check_command(const char *text, const char *user, const char *wanted)
{
    struct runtime_options none = {0};
    struct target t TARGET_AUTO = {0};
    struct argv command ARGV_AUTO = {0}, out ARGV_AUTO = {0};
    struct buf line BUF_AUTO = BUF_INIT;
    assert_int_equal(target_parse(&t, text, &none, NULL), 0);
    argv_add(&command, "it's");
    assert_int_equal(target_command(&t, user, &command, &out, NULL), 0);
    for (size_t i = 0; i < out.n; i++)
        buf_addf(&line, "%s%s", i > 0 ? "|" : "", out.words[i]);
    assert_string_equal(buf_str(&line), wanted);
}

static void each_kind_has_its_command(void **state)
{
    (void)state;
    check_command("docker:web", "0", "docker|exec|-i|-u|0|web|it's");
    check_command("podman:web", NULL, "podman|exec|-i|web|it's");
    check_command("k8s:pod", NULL, "kubectl|exec|-i|pod|--|it's");
    check_command("k8s:ns/pod", NULL, "kubectl|-n|ns|exec|-i|pod|--|it's");
    check_command("k8s:ns/pod/c", NULL, "kubectl|-n|ns|exec|-i|pod|-c|c|--|it's");
    check_command("k8s:ctx/ns/pod/c", NULL, "kubectl|--context|ctx|-n|ns|exec|-i|pod|-c|c|--|it's");
    check_command("k8s:arn:aws:x/ctx/ns/pod/c", NULL,
                  "kubectl|--context|arn:aws:x/ctx|-n|ns|exec|-i|pod|-c|c|--|it's");
    check_command("k8s://pod/c", NULL, "kubectl|exec|-i|pod|-c|c|--|it's");
    check_command("ssh:me@host", NULL, "ssh|-T|-o|BatchMode=yes|--|me@host|'it'\\''s'");
    check_command("exec:run 'a b' --", NULL, "run|a b|--|it's");
    check_command("local:", NULL, "it's");
}

static void what_is_no_target_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",          "web",        "docker",   "docker:",   "docker:-v",
                                      "x:y",       "k8s:",       "k8s://",   "k8s:ns/-v", "k8s:-n/pod",
                                      "local:x",   "exec:",      "exec:'",   "dir:",      "ssh:-ox",
                                      "compose:x", "compose:/x", "DOCKER:x", ":x",        "compose:a/b/c"};
    struct runtime_options none = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct target t TARGET_AUTO = {0};
        struct err err = {0};
        if (target_parse(&t, bad[i], &none, &err) != -1 || err.code != ERR_PARAMS)
            fail_msg("'%s' is taken for a target", bad[i]);
    }
}

static void patterns_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool pattern;
    } cases[] = {{"docker:*", true},     {"docker:web", false},  {"k8s:-l app=x", true},
                 {"k8s:ns/-lapp", true}, {"k8s:ns/web-*", true}, {"k8s:ns/web", false},
                 {"compose:a/b", true},  {"exec:a*", false},     {"dir:/a*", false},
                 {"ssh:h*", false}};
    struct runtime_options none = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct target t TARGET_AUTO = {0};
        assert_int_equal(target_parse(&t, cases[i].text, &none, NULL), 0);
        assert_int_equal(target_is_pattern(&t), cases[i].pattern);
    }
}

/* ---- answers ---- */

static void check_arch(const char *facts, const char *wanted)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct recon r;
    struct err err = {0};
    buf_addf(&text, "noise\n" SCRIPT_MARK "\n%s\n" SCRIPT_END "\n", facts);
    assert_true(recon_read(&r, span_of(&text)));
    assert_true(r.whole);
    const char *arch = recon_arch(&r, &err);
    if (wanted)
        assert_string_equal(arch ? arch : err.msg, wanted);
    else
        assert_null(arch);
    recon_release(&r);
}

static void the_processor_is_told_or_refused(void **state)
{
    (void)state;
    check_arch("s Linux\nm x86_64", "amd64");
    check_arch("s Linux\nm AARCH64", "arm64");
    check_arch("s Linux\nm x86_64\r", NULL);
    check_arch("s Linux\nm ", NULL);
    check_arch("s Darwin\nm arm64", NULL);
    check_arch("u 0", NULL);
    check_arch("e \177ELF\2\1\1\3>\1", "amd64");   /* the type, the machine */
    check_arch("e \177ELF\2\1\1\3\2>\1", "amd64"); /* the ABI before them */
    check_arch("e \177ELF\2\1\1\3\xb7\1", "arm64");
    check_arch("e \177ELF\1\1\1\3\3\1", "i386");
    check_arch("e \177ELF", NULL);
    check_arch("e #!/bin/sh", NULL);
}

static void facts_are_taken_as_far_as_they_go(void **state)
{
    (void)state;
    static const char answer[] =
        "motd\n" SCRIPT_MARK "\nu 1000\ns Linux\nm x86_64\no ID=debian\n"
        "o PRETTY_NAME=\"De\033[2Jbian\"\nl /lib64/ld-linux-x86-64.so.2\nn /tmp/x\nw /opt/x\n"
        "w /opt/x\nw relative\nw /odd\033[2J\nw /odd\t\nb /opt/x/toolbox\n{\"ok\":true}\n" SCRIPT_END
        "\n" SCRIPT_CALL "\nthe rest\n";
    struct recon r;
    assert_true(recon_read(&r, (struct span){answer, sizeof answer - 1}));
    assert_string_equal(r.uid, "1000");
    assert_string_equal(buf_str(&r.distribution), "Debian");
    assert_string_equal(r.libc, "glibc");
    assert_int_equal(r.bits, 64);
    assert_int_equal(r.dirs.n, 2);
    assert_string_equal(r.dirs.words[0], "/opt/x");
    assert_string_equal(r.dirs.words[1], "/tmp/x"); /* mounted noexec: last */
    assert_string_equal(r.found, "/opt/x/toolbox");
    assert_true(span_is(r.verdict, "{\"ok\":true}"));
    recon_release(&r);
    static const char none[] = "bash: no such thing\n";
    assert_false(recon_read(&r, (struct span){none, sizeof none - 1}));
    recon_release(&r);
}

static void what_is_shown_is_harmless(void **state)
{
    (void)state;
    struct buf out BUF_AUTO = BUF_INIT;
    static const char text[] = "\033]0;title\007 two\r\n\n\twords \xff\n";
    transport_show(&out, text, sizeof text - 1, 100);
    assert_string_equal(buf_str(&out), "two words \xEF\xBF\xBD");
    buf_truncate(&out, 0);
    transport_show(&out, "0123456789", 10, 4);
    assert_string_equal(buf_str(&out), "…6789");
    assert_true(transport_is_plain("/a b/ü'\"$*?"));
    static const char *const odd[] = {"a\tb", "a\nb", "a\rb", "\033[m", "\x7f", "\xc2\x9b", "\xff", "\xc3"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        assert_false(transport_is_plain(odd[i]));
}

/* ---- calls ---- */

static enum transport_end run_script(const char *script, int timeout_ms, struct transport_call *c)
{
    struct transport t;
    struct err err;
    char shell[] = "/bin/sh", option[] = "-c";
    char *text = strdup(script), *const argv[] = {shell, option, text, NULL};
    assert_int_equal(transport_init(&t, 20000, &err), 0);
    c->timeout_ms = timeout_ms;
    enum transport_end how = transport_run(&t, argv, c, &err);
    transport_release(&t);
    free(text);
    return how;
}

static void put_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
    close(fd);
}

static off_t size_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

/* Where there is no rm, what was written is emptied; but nothing that a link leads to, and nothing where
 * others can put one. */
static void what_cannot_be_removed_is_emptied(void **state)
{
    static const char begin[] = "rm(){ false;};busybox(){ false;}\n";
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    struct buf script BUF_AUTO = BUF_INIT;
    struct argv shell = {0}, dirs = {0};
    struct script_options o = {.name = "toolbox", .sums = "", .temporary = "tmp-1"};
    char dir[64];
    (void)state;
    make_dir(dir);
    assert_true(chdir(dir) == 0 && mkdir("own", 0700) == 0 && mkdir("open", 0700) == 0 &&
                chmod("open", 0777) == 0);
    put_text("own/tmp-1.0", "text");
    put_text("open/tmp-1.0", "text");
    put_text("else", "text");
    assert_int_equal(symlink("../else", "own/tmp-1.1"), 0);
    char *own = mem_printf("%s/own", dir), *open_to_all = mem_printf("%s/open", dir);
    argv_add(&dirs, own);
    argv_add(&dirs, open_to_all);
    buf_adds(&script, begin);
    script_clean(&script, &o, &dirs);
    script_shell(&shell);
    c.input[0] = span_of(&script);
    struct transport t;
    struct err err;
    assert_int_equal(transport_init(&t, 20000, &err), 0);
    assert_int_equal(transport_run(&t, shell.words, &c, &err), TRANSPORT_ENDED);
    transport_release(&t);
    assert_true(size_of("own/tmp-1.0") == 0 && size_of("open/tmp-1.0") == 4 && size_of("else") == 4);
    argv_release(&shell);
    argv_release(&dirs);
    free(own);
    free(open_to_all);
    assert_int_equal(chdir("/"), 0);
    remove_dir(dir);
}

static void a_call_has_an_end(void **state)
{
    (void)state;
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    c.input[0] = (struct span){"in", 2};
    assert_int_equal(run_script("cat; echo err >&2; exit 7", 0, &c), TRANSPORT_ENDED);
    assert_int_equal(c.status, 7);
    assert_string_equal(buf_str(&c.out), "in");
    assert_string_equal(buf_str(&c.err), "err\n");
    assert_int_equal(run_script("kill -9 $$", 0, &c), TRANSPORT_ENDED);
    assert_int_equal(c.status, 128 + 9);
    assert_int_equal(run_script("sleep 600", 200, &c), TRANSPORT_TIMEOUT);
    assert_int_equal(run_script("yes", 0, &c), TRANSPORT_FLOOD);
    assert_int_equal(run_script("sleep 600 & exit 0", 0, &c), TRANSPORT_ENDED); /* it holds the pipes */
}

static void an_answer_has_its_share_of_the_memory(void **state)
{
    struct rlimit limit, low;
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    (void)state;
    if (SANITIZED) /* which takes terabytes of addresses for itself */
        skip();
    c.out_max = 512u << 20;
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    low = (struct rlimit){256u << 20, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
    enum transport_end how = run_script("yes", 0, &c);
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    assert_int_equal(how, TRANSPORT_FLOOD);
    assert_true(c.out.len < 30u << 20);
}

static void a_program_that_is_not_there_is_said(void **state)
{
    (void)state;
    struct transport t;
    struct err err;
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    char name[] = "no-such-runtime", *const argv[] = {name, NULL};
    assert_int_equal(transport_init(&t, 20000, &err), 0);
    assert_int_equal(transport_run(&t, argv, &c, &err), TRANSPORT_FAILED);
    assert_non_null(strstr(err.msg, "no-such-runtime"));
    transport_release(&t);
}

static enum transport_step ask_once(void *arg, struct transport_call *c)
{
    if (!strstr(buf_str(&c->out), "ready"))
        return TRANSPORT_WAITS;
    c->input[1] = (struct span){arg, strlen(arg)};
    return TRANSPORT_ENDS;
}

static void what_is_sent_may_depend_on_what_is_answered(void **state)
{
    (void)state;
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    char word[] = "second\n";
    c.input[0] = (struct span){"first\n", 6};
    c.answered = ask_once;
    c.answered_arg = word;
    assert_int_equal(run_script("read a; sleep 0.1; echo ready; read b; cat; echo $a $b", 0, &c),
                     TRANSPORT_ENDED);
    assert_string_equal(buf_str(&c.out), "ready\nfirst second\n");
}

/* ---- directories ---- */

static void links_stay_inside(void **state)
{
    (void)state;
    char dir[] = "/tmp/inject-XXXXXX";
    assert_non_null(mkdtemp(dir));
    int root = open(dir, O_RDONLY | O_DIRECTORY);
    size_t made;
    mkdirat(root, "tmp", 0755);
    symlinkat("/tmp", root, "absolute");
    symlinkat("../../../../../../tmp", root, "upwards");
    const char *const ways[] = {"/absolute/a/b", "/upwards/c", "/tmp/d", "/tmp/../../tmp/e"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int fd = safe_path_open(root, ways[i], SAFE_MAKE, &made, NULL);
        assert_true(fd >= 0 && made > 0);
        close(fd);
        fd = open_in(root, ways[i], O_RDONLY | O_DIRECTORY, 0);
        if (fd < 0)
            assert_int_equal(errno, ELOOP); /* a kernel that can't do better */
        else
            close(fd);
    }
    assert_int_equal(access("/tmp/c", F_OK), -1);
    assert_int_equal(access("/tmp/e", F_OK), -1);
    close(root);
    char *const argv[] = {(char[]){"rm"}, (char[]){"-rf"}, dir, NULL};
    pid_t pid = fork();
    if (pid == 0)
        execvp("rm", argv);
    waitpid(pid, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_those_of_a_shell),
        cmocka_unit_test(an_open_quote_is_refused),
        cmocka_unit_test(what_is_quoted_is_read_back),
        cmocka_unit_test(each_kind_has_its_command),
        cmocka_unit_test(what_is_no_target_is_refused),
        cmocka_unit_test(patterns_are_told),
        cmocka_unit_test(the_processor_is_told_or_refused),
        cmocka_unit_test(facts_are_taken_as_far_as_they_go),
        cmocka_unit_test(what_is_shown_is_harmless),
        cmocka_unit_test(what_cannot_be_removed_is_emptied),
        cmocka_unit_test(a_call_has_an_end),
        cmocka_unit_test(an_answer_has_its_share_of_the_memory),
        cmocka_unit_test(a_program_that_is_not_there_is_said),
        cmocka_unit_test(what_is_sent_may_depend_on_what_is_answered),
        cmocka_unit_test(links_stay_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
