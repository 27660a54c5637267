#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chunk.h"
#include "chunk_store.h"
#include "io.h"
#include "mem.h"
#include "support.h"

#define LIMIT "INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES"

static char dir[64];
static char store[80];

static void remove_tree(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        char *inside MEM_AUTO = mem_printf("%s/%s", path, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && unlink(inside) < 0)
            remove_tree(inside);
    }
    if (d)
        closedir(d);
    rmdir(path);
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/chunk-XXXXXX");
    snprintf(store, sizeof store, "%s/answers", mkdtemp(dir));
    setenv("TOOLBOX_DIR", dir, 1);
    unsetenv(LIMIT);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_tree(dir);
    unsetenv("TOOLBOX_DIR");
    return 0;
}

static int files(void)
{
    int n = 0;
    DIR *d = opendir(store);
    struct dirent *e;
    while (d && (e = readdir(d)))
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static struct span span_str(const char *s)
{
    return (struct span){s, strlen(s)};
}

/* ---- asking ---- */

static rpc_handler find(void *ctx, const char *method, void **handler_ctx)
{
    (void)ctx, (void)handler_ctx;
    return rpc_find(chunk_methods, method);
}

static void keep(void *arg, struct buf *response)
{
    buf_add(arg, response->data, response->len);
}

static void ask(struct buf *line, const char *id, const char *params)
{
    char *request MEM_AUTO = mem_printf(
        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"" CHUNK_METHOD "\",\"params\":%s}", id, params);
    buf_truncate(line, 0);
    assert_null(rpc_take(span_str(request), find, NULL, (struct rpc_sink){keep, line}));
}

static void expect_error(const char *params, int code)
{
    char part[32];
    struct buf line BUF_AUTO = BUF_INIT;
    ask(&line, "1", params);
    snprintf(part, sizeof part, "\"code\":%d,", code);
    if (!strstr(buf_str(&line), part))
        fail_msg("%s gave %s", params, buf_str(&line));
}

/* ---- an envelope taken apart ---- */

struct envelope {
    char handle[40];
    size_t offset, next, total;
    bool done;
    struct buf data;
};

static size_t number(struct span object, const char *key)
{
    struct span value;
    assert_true(json_member(object, key, &value, NULL));
    assert_int_equal(json_kind(value), JSON_NUMBER);
    return strtoull(value.s, NULL, 10);
}

static void decode64(struct buf *out, struct span text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0, n = 0;
    assert_int_equal(text.n % 4, 0);
    for (size_t i = 0; i < text.n && text.s[i] != '='; i++) {
        const char *digit = strchr(digits, text.s[i]);
        assert_non_null(digit);
        bits = bits << 6 | (unsigned)(digit - digits);
        n += 6;
        if (n >= 8) {
            n -= 8;
            buf_addc(out, (char)(bits >> n));
        }
        bits &= (1u << n) - 1;
    }
    assert_int_equal(bits, 0);
}

/* Checks the line's form and adds its data to e->data. */
static void open_envelope(struct envelope *e, const struct buf *line, const char *id)
{
    struct span member, field;
    assert_int_equal(json_check(span_of(line), NULL), 0);
    assert_true(json_member(span_of(line), "jsonrpc", &member, NULL));
    assert_true(span_is(member, "\"2.0\""));
    assert_true(json_member(span_of(line), "id", &member, NULL));
    assert_true(span_is(member, id));
    assert_true(json_member(span_of(line), "__inspect_json_rpc_response_chunk__", &member, NULL));
    assert_int_equal(number(member, "version"), 1);
    assert_true(json_member(member, "handle", &field, NULL));
    assert_int_equal(field.n, 34);
    snprintf(e->handle, sizeof e->handle, "%.32s", field.s + 1);
    assert_true(chunk_handle_valid(e->handle));
    e->offset = number(member, "offset");
    e->next = number(member, "next_offset");
    e->total = number(member, "total_size");
    assert_true(json_member(member, "done", &field, NULL));
    assert_int_equal(json_kind(field), JSON_BOOL);
    e->done = field.s[0] == 't';
    assert_int_equal(e->done, e->next == e->total);
    assert_true(json_member(member, "chunk", &field, NULL));
    size_t before = e->data.len;
    decode64(&e->data, (struct span){field.s + 1, field.n - 2});
    assert_true(e->data.len > before);
    assert_int_equal(e->data.len - before, e->next - e->offset);
    assert_true(e->next - e->offset <= 512 << 10);
}

/* Follows an envelope to its end and compares. */
static void follow(struct buf *line, const char *id, size_t limit, const struct buf *answer)
{
    struct envelope e = {.data = BUF_INIT};
    for (size_t expected = 0;; expected = e.next) {
        assert_true(line->len < limit); /* with its newline */
        open_envelope(&e, line, id);
        assert_int_equal(e.offset, expected);
        assert_int_equal(e.total, answer->len);
        /* The largest that fits: three bytes more would be four characters more. */
        if (!e.done && e.next - e.offset < 512 << 10)
            assert_true(line->len + 1 + 4 > limit);
        if (e.done)
            break;
        char params[128];
        snprintf(params, sizeof params, "{\"handle\":\"%s\",\"offset\":%zu}", e.handle, e.next);
        ask(line, id, params);
    }
    assert_int_equal(e.data.len, answer->len);
    assert_memory_equal(e.data.data, answer->data, answer->len);
    buf_release(&e.data);
    char params[128];
    for (int i = 0; i < 2; i++) {
        snprintf(params, sizeof params, "{\"handle\":\"%s\",\"release\":true}", e.handle);
        ask(line, "7", params);
        assert_string_equal(line->data, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":null}");
    }
    snprintf(params, sizeof params, "{\"handle\":\"%s\",\"offset\":0}", e.handle);
    expect_error(params, ERR_CHUNK);
    assert_int_equal(files(), 0);
}

static void make_answer(struct buf *answer, const char *id, size_t n)
{
    buf_addf(answer, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":\"", id);
    while (answer->len < n)
        buf_adds(answer, "a\\\"\\\\\xF0\x9F\x98\x80\xC3\xA9\\n");
    buf_adds(answer, "\"}");
}

static void set_limit(size_t limit)
{
    char text[32];
    snprintf(text, sizeof text, "%zu", limit);
    setenv(LIMIT, text, 1);
}

/* ---- tests ---- */

static void reads_the_limit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t limit;
    } cases[] = {
        {"131072", 131072}, {"1", 1},
        {"0", 65536},       {"-1", 65536},
        {"x", 65536},       {"", 65536},
        {"5x", 65536},      {"1.5", 65536},
        {"0065", 65},       {"99999999999999999999999", SIZE_MAX},
    };
    assert_int_equal(chunk_limit(0), 0);
    assert_int_equal(chunk_limit(CHUNK_LIMIT_DEFAULT), 65536);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv(LIMIT, cases[i].text, 1);
        assert_true(chunk_limit(0) == cases[i].limit);
    }
}

static void leaves_what_fits(void **state)
{
    (void)state;
    struct buf line BUF_AUTO = BUF_INIT;
    make_answer(&line, "1", 1000);
    size_t n = line.len;
    assert_int_equal(chunk_wrap(&line, span_str("1"), n + 1, NULL), 0);
    assert_int_equal(line.len, n);
    assert_int_equal(chunk_wrap(&line, span_str("1"), 0, NULL), 0); /* no limit */
    assert_int_equal(line.len, n);
    assert_int_equal(access(store, F_OK), -1); /* and nothing is made for it */
    assert_int_equal(chunk_wrap(&line, span_str("1"), n, NULL), 0);
    struct envelope e = {.data = BUF_INIT};
    open_envelope(&e, &line, "1");
    buf_release(&e.data);
}

static void cuts_and_joins(void **state)
{
    (void)state;
    static const struct {
        size_t answer, limit;
        const char *id;
    } cases[] = {
        {70000, 65536, "1"},      {70000, 65536, "\"a long id, as text, with \xC3\xA9 in it\""},
        {1000, 300, "null"},      {1003, 301, "1"},
        {1005, 302, "1"},         {1200, 303, "18446744073709551615"},
        {100000, 1000, "1"},      {2400000, 131072, "1e3"},
        {2400000, 10000000, "1"}, {1 << 20, 900000, "-1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf answer BUF_AUTO = BUF_INIT, line BUF_AUTO = BUF_INIT;
        make_answer(&answer, cases[i].id, cases[i].answer);
        buf_add(&line, answer.data, answer.len);
        if (line.len < cases[i].limit)
            continue;
        set_limit(cases[i].limit);
        assert_int_equal(chunk_wrap(&line, span_str(cases[i].id), cases[i].limit, NULL), 0);
        follow(&line, cases[i].id, cases[i].limit, &answer);
    }
}

static void large_pieces_are_bounded(void **state)
{
    (void)state;
    struct buf answer BUF_AUTO = BUF_INIT, line BUF_AUTO = BUF_INIT;
    make_answer(&answer, "1", 3u << 20);
    buf_add(&line, answer.data, answer.len);
    set_limit(2u << 20);
    assert_int_equal(chunk_wrap(&line, span_str("1"), 2u << 20, NULL), 0);
    follow(&line, "1", 2u << 20, &answer);
}

static void tiny_limits_get_three_bytes(void **state)
{
    (void)state;
    struct buf answer BUF_AUTO = BUF_INIT, line BUF_AUTO = BUF_INIT;
    make_answer(&answer, "1", 100);
    buf_add(&line, answer.data, answer.len);
    set_limit(10);
    assert_int_equal(chunk_wrap(&line, span_str("1"), 10, NULL), 0);
    struct envelope e = {.data = BUF_INIT};
    open_envelope(&e, &line, "1");
    assert_int_equal(e.next, 3);
    size_t n = line.len;
    assert_int_equal(chunk_wrap(&line, span_str("1"), 10, NULL), 0); /* not again */
    assert_int_equal(line.len, n);
    buf_release(&e.data);
    assert_int_equal(files(), 1);
}

static void transfers_do_not_mix(void **state)
{
    (void)state;
    struct buf answers[2] = {BUF_INIT, BUF_INIT}, lines[2] = {BUF_INIT, BUF_INIT};
    struct envelope e[2] = {{.data = BUF_INIT}, {.data = BUF_INIT}};
    set_limit(1000);
    for (int i = 0; i < 2; i++) {
        make_answer(&answers[i], i ? "\"two\"" : "1", 4000);
        buf_add(&lines[i], answers[i].data, answers[i].len);
        assert_int_equal(chunk_wrap(&lines[i], span_str("1"), 1000, NULL), 0);
        open_envelope(&e[i], &lines[i], "1");
    }
    while (!e[0].done || !e[1].done) {
        for (int i = 0; i < 2; i++) {
            char params[256];
            if (e[i].done)
                continue;
            snprintf(params, sizeof params, "{\"handle\":\"%s\",\"offset\":%zu,\"_run_as_user\":\"nobody\"}",
                     e[i].handle, e[i].next);
            ask(&lines[i], "1", params);
            open_envelope(&e[i], &lines[i], "1");
        }
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(e[i].data.len, answers[i].len);
        assert_memory_equal(e[i].data.data, answers[i].data, answers[i].len);
        buf_release(&e[i].data);
        buf_release(&lines[i]);
        buf_release(&answers[i]);
    }
}

/* Stores an answer; gives its handle. */
static void put(char handle[CHUNK_HANDLE_LEN + 1], const char *text)
{
    struct err err;
    if (chunk_store(span_str(text), handle, &err) < 0)
        fail_msg("%s", err.msg);
}

static void refuses_bad_requests(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{}",
        "{\"handle\":5,\"offset\":0}",
        "{\"offset\":0}",
        "{\"handle\":\"\",\"offset\":0}",
        "{\"handle\":\"../answers/0123456789abcdef0123\",\"offset\":0}",
        "{\"handle\":\"0123456789ABCDEF0123456789abcdef\",\"offset\":0}",
        "{\"handle\":\"0123456789abcdef0123456789abcde\",\"offset\":0}",
        "{\"handle\":\"0123456789abcdef0123456789abcdef0\",\"offset\":0}",
        "{\"handle\":\"0123456789abcdef0123456789abcde\\u0000\",\"offset\":0}",
        "{\"handle\":\"/etc/passwd\",\"release\":true}",
        "{\"handle\":\"0123456789abcdef0123456789abcdef\"}",
        "{\"handle\":\"0123456789abcdef0123456789abcdef\",\"offset\":-1}",
        "{\"handle\":\"0123456789abcdef0123456789abcdef\",\"offset\":1.0}",
        "{\"handle\":\"0123456789abcdef0123456789abcdef\",\"offset\":0,\"release\":false}",
        "{\"handle\":\"0123456789abcdef0123456789abcdef\",\"offset\":0,\"more\":1}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_error(bad[i], ERR_PARAMS);
    expect_error("{\"handle\":\"0123456789abcdef0123456789abcdef\",\"offset\":0}", ERR_CHUNK);
    char handle[CHUNK_HANDLE_LEN + 1], params[128];
    put(handle, "12345");
    for (int offset = 5; offset < 8; offset++) {
        snprintf(params, sizeof params, "{\"handle\":\"%s\",\"offset\":%d}", handle, offset);
        expect_error(params, ERR_PARAMS);
    }
}

static void keeps_the_store_private(void **state)
{
    (void)state;
    char handle[CHUNK_HANDLE_LEN + 1], again[CHUNK_HANDLE_LEN + 1];
    struct stat st;
    umask(0);
    put(handle, "x");
    put(again, "x");
    umask(022);
    assert_string_not_equal(handle, again);
    assert_int_equal(stat(store, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    char *path MEM_AUTO = mem_printf("%s/%s", store, handle);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    int fd = chunk_open(handle);
    assert_true(fd >= 0);
    close(fd);
}

/* Whatever lies where the store should be: the answer becomes an error, and what lies there stays as it is.
 */
static void survives_without_a_store(void **state)
{
    (void)state;
    struct stat st;
    for (int kind = 0; kind < 4; kind++) {
        char *aim MEM_AUTO = mem_printf("%s/aim", dir);
        mkdir(aim, 0755);
        if (kind == 0)
            assert_int_equal(symlink("aim", store), 0);
        else if (kind == 1)
            close(open(store, O_CREAT | O_WRONLY, 0644));
        else if (kind == 2)
            assert_int_equal(mkdir(store, 0755), 0);
        else
            setenv("TOOLBOX_DIR", "/proc/nowhere", 1);
        struct buf line BUF_AUTO = BUF_INIT;
        struct err err;
        make_answer(&line, "5", 1000);
        assert_int_equal(chunk_wrap(&line, span_str("5"), 500, &err), -1);
        assert_int_equal(err.code, ERR_TOOL);
        static const char start[] = "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":-32099,";
        assert_memory_equal(line.data, start, sizeof start - 1);
        assert_int_equal(json_check(span_of(&line), NULL), 0);
        expect_error("{\"handle\":\"0123456789abcdef0123456789abcdef\",\"offset\":0}", ERR_CHUNK);
        assert_int_equal(stat(aim, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0755);
        unlink(store);
        rmdir(store);
    }
}

/* A file of another kind than was stored is not followed, and no reader hangs on it. */
static void opens_plain_files_only(void **state)
{
    (void)state;
    char handle[CHUNK_HANDLE_LEN + 1], params[128];
    put(handle, "x");
    char *path MEM_AUTO = mem_printf("%s/%s", store, handle);
    snprintf(params, sizeof params, "{\"handle\":\"%s\",\"offset\":0}", handle);
    for (int kind = 0; kind < 3; kind++) {
        assert_int_equal(remove(path), 0);
        if (kind == 0)
            assert_int_equal(symlink("/etc/passwd", path), 0);
        else if (kind == 1)
            assert_int_equal(mkfifo(path, 0600), 0);
        else
            assert_int_equal(mkdir(path, 0700), 0);
        expect_error(params, ERR_CHUNK);
    }
}

static void age(const char *path, int seconds)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void forgets_old_answers(void **state)
{
    (void)state;
    char handles[3][CHUNK_HANDLE_LEN + 1], params[128];
    for (int i = 0; i < 3; i++) {
        put(handles[i], "123");
        char *path MEM_AUTO = mem_printf("%s/%s", store, handles[i]);
        age(path, i == 0 ? 3500 : 3700);
    }
    char *other MEM_AUTO = mem_printf("%s/other", store);
    close(open(other, O_CREAT | O_WRONLY, 0600));
    age(other, 100000);
    struct buf line BUF_AUTO = BUF_INIT;
    snprintf(params, sizeof params, "{\"handle\":\"%s\",\"offset\":1}", handles[2]);
    ask(&line, "1", params); /* read: its hour begins anew */
    char newest[CHUNK_HANDLE_LEN + 1];
    put(newest, "4");
    assert_int_equal(files(), 4);
    int expected[] = {0, -1, 0};
    for (int i = 0; i < 3; i++) {
        char *path MEM_AUTO = mem_printf("%s/%s", store, handles[i]);
        assert_int_equal(access(path, F_OK), expected[i]);
    }
}

/* ---- several users ---- */

#define U1 (54000 + (uid_t)getpid() % 1000)
#define U2 (U1 + 1000)

/* Runs fn as that user, without the variable; gives what it returned. */
static int as_user(uid_t uid, int (*fn)(void *arg), void *arg)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        unsetenv("TOOLBOX_DIR");
        if (uid != 0 && (setgid(uid) < 0 || setuid(uid) < 0))
            _exit(99);
        _exit(fn(arg));
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int store_to_pipe(void *arg)
{
    char handle[CHUNK_HANDLE_LEN + 1];
    if (chunk_store(span_str("an answer"), handle, NULL) < 0)
        return 1;
    return write(*(int *)arg, handle, CHUNK_HANDLE_LEN) == CHUNK_HANDLE_LEN ? 0 : 2;
}

static int can_open(void *arg)
{
    char data[16];
    int fd = chunk_open(arg);
    return fd >= 0 && read(fd, data, sizeof data) == 9 && memcmp(data, "an answer", 9) == 0;
}

static int release(void *arg)
{
    chunk_remove(arg);
    return 0;
}

static void root_reads_on(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip_because("only root reads on");
    int ends[2];
    char handle[CHUNK_HANDLE_LEN + 1] = "", place[64];
    uid_t u1 = U1, u2 = U2;
    assert_int_equal(pipe(ends), 0);
    snprintf(place, sizeof place, "/tmp/.toolbox-%u", (unsigned)u1);
    remove_tree(place);
    assert_int_equal(as_user(u1, store_to_pipe, &ends[1]), 0);
    assert_int_equal(read(ends[0], handle, CHUNK_HANDLE_LEN), CHUNK_HANDLE_LEN);
    assert_int_equal(as_user(u1, can_open, handle), 1);
    assert_int_equal(as_user(0, can_open, handle), 1);
    assert_int_equal(as_user(u2, can_open, handle), 0);
    as_user(u2, release, handle);
    assert_int_equal(as_user(u1, can_open, handle), 1);

    /* Not through what the user could have put in the way. */
    char *file MEM_AUTO = mem_printf("%s/answers/%s", place, handle);
    assert_int_equal(chown(file, u2, u2), 0);
    assert_int_equal(as_user(0, can_open, handle), 0);
    assert_int_equal(chown(file, u1, u1), 0);
    assert_int_equal(chmod(place, 0755), 0);
    assert_int_equal(as_user(0, can_open, handle), 0);
    assert_int_equal(chmod(place, 0700), 0);

    as_user(0, release, handle);
    assert_int_equal(as_user(u1, can_open, handle), 0);
    assert_int_equal(access(file, F_OK), -1);
    close(ends[0]);
    close(ends[1]);
    remove_tree(place);
}

#define STORED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* ---- a machine of its own: "/" with what it says of its memory ---- */

static void make_private(const char *path, uid_t owner)
{
    char at[160];
    snprintf(at, sizeof at, "%s", path);
    for (char *slash = strchr(at + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        CHECK(mkdir(at, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    CHECK(mkdir(at, 0700) == 0 && chown(at, owner, owner) == 0);
}

static void make_file(const char *path, uid_t owner, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0 && fchown(fd, owner, owner) == 0);
    close(fd);
}

static bool stores(size_t n, char handle[CHUNK_HANDLE_LEN + 1])
{
    struct err err = {0};
    char *text MEM_AUTO = mem_zalloc(n + 1);
    bool stored = chunk_store((struct span){text, n}, handle, &err) == 0;
    CHECK(stored || (err.code == ERR_TOOL && strstr(err.msg, "/place/answers")));
    return stored;
}

static bool is_kept(const char *handle)
{
    int fd = chunk_open(handle);
    close(fd);
    return fd >= 0;
}

/* All of the memory that there is are the three shares that are had in any case: 768 KiB. */
static void check_memory(void *arg)
{
    (void)arg;
    enum { K = 1024 };
    char handles[4][CHUNK_HANDLE_LEN + 1];
    own_mounts();
    if (mount("none", dir, "tmpfs", 0, "mode=755") < 0)
        cannot("no file system in memory");
    enter_root(dir);
    CHECK(mkdir("/proc", 0755) == 0);
    make_file("/proc/meminfo", geteuid(), "MemAvailable: 0 kB\n");
    setenv("TOOLBOX_DIR", "/place", 1);
    for (int i = 0; i < 3; i++) {
        CHECK(stores(256ul * K, handles[i]));
        char *path MEM_AUTO = mem_printf("/place/answers/%s", handles[i]);
        struct timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - 100}};
        times[1].tv_nsec = i == 1 ? 1 : 5; /* the second is the one that was asked for longest ago */
        CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
    }
    make_file("/place/answers/other", geteuid(), "not an answer");
    CHECK(is_kept(handles[0]) && is_kept(handles[1]) && is_kept(handles[2]));
    CHECK(stores(1, handles[3]));
    CHECK(is_kept(handles[0]) && !is_kept(handles[1]) && is_kept(handles[2]) && is_kept(handles[3]));
    CHECK(stores(768ul * K, handles[3]) && is_kept(handles[3])); /* alone */
    CHECK(!is_kept(handles[0]) && !is_kept(handles[2]));
    CHECK(!stores(768ul * K + 1, handles[0]));
    CHECK(access("/place/answers/other", F_OK) == 0);
}

static void answers_in_memory_leave_memory_to_others(void **state)
{
    (void)state;
    in_child(check_memory, NULL);
}

#define HANDLE(n) "0123456789abcdef0123456789abcde" #n

static void check_bases(void *arg)
{
    (void)arg;
    static const struct {
        const char *place;
        uid_t owner, files;
        const char *handle;
        bool found;
    } stores[] = {
        {"/run/user/5001/toolbox", 5001, 5001, HANDLE(0), true},
        {"/tmp/.toolbox-5002", 5002, 5002, HANDLE(1), true},
        {"/var/tmp/.toolbox-5003", 5003, 5003, HANDLE(2), true},
        {"/dev/shm/.toolbox-4294967294", 4294967294u, 4294967294u, HANDLE(3), true},
        {"/tmp/.toolbox-5005", 5006, 5005, HANDLE(4), false},           /* somebody else's directory */
        {"/tmp/.toolbox-5007", 5007, 5006, HANDLE(5), false},           /* and file */
        {"/tmp/.toolbox-4294967295", 4294967295u, 0, HANDLE(6), false}, /* nobody's */
        {"/tmp/.toolbox-00000005008", 5008, 5008, HANDLE(7), false},    /* no name of ours */
        {"/tmp/.toolbox-5009x", 5009, 5009, HANDLE(8), false},
        {"/tmp/.toolbox-", 0, 0, HANDLE(9), false},
        {"/tmp/toolbox-5010", 5010, 5010, HANDLE(a), false},
        {"/run/user/5011/other", 5011, 5011, HANDLE(b), false},
        {"/tmp/.toolbox-0000005012", 5012, 5012, HANDLE(c), true},
    };
    if (geteuid() != 0)
        cannot("only root reads on");
    enter_root(dir);
    unsetenv("TOOLBOX_DIR");
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
        char *store_path MEM_AUTO = mem_printf("%s/answers", stores[i].place);
        char *file MEM_AUTO = mem_printf("%s/%s", store_path, stores[i].handle);
        make_private(stores[i].place, stores[i].owner);
        make_private(store_path, stores[i].owner);
        make_file(file, stores[i].files, "an answer");
    }
    CHECK(chown("/run/user/5001", 5001, 5001) == 0 && chmod("/run/user/5001", 0700) == 0);
    CHECK(chown("/run/user/5011", 5011, 5011) == 0 && chmod("/run/user/5011", 0700) == 0);
    unsigned before = open_descriptors();
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++)
        if (is_kept(stores[i].handle) != stores[i].found) {
            fprintf(stderr, "%s\n", stores[i].place);
            _exit(1);
        }
    CHECK(open_descriptors() == before);
    chunk_remove(HANDLE(4)); /* what isn't found isn't removed */
    CHECK(access("/tmp/.toolbox-5005/answers/" HANDLE(4), F_OK) == 0);
    chunk_remove(HANDLE(0));
    CHECK(access("/run/user/5001/toolbox/answers/" HANDLE(0), F_OK) < 0 && open_descriptors() == before);
    CHECK(chmod("/tmp/.toolbox-5002/answers", 0755) == 0 && !is_kept(HANDLE(1)));
}

static void root_looks_where_users_have_their_places(void **state)
{
    (void)state;
    in_child(check_bases, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORED(reads_the_limit),
        STORED(leaves_what_fits),
        STORED(cuts_and_joins),
        STORED(large_pieces_are_bounded),
        STORED(tiny_limits_get_three_bytes),
        STORED(transfers_do_not_mix),
        STORED(refuses_bad_requests),
        STORED(keeps_the_store_private),
        STORED(survives_without_a_store),
        STORED(opens_plain_files_only),
        STORED(forgets_old_answers),
        STORED(root_reads_on),
        STORED(answers_in_memory_leave_memory_to_others),
        STORED(root_looks_where_users_have_their_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
