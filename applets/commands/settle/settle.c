#include "commands/settle/settle.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dir_read.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "osinfo.h"
#include "place.h"
#include "proc.h"
#include "relocate.h"
#include "safe_path.h"
#include "commands/server/moving.h"
#include "commands/server/server.h"
#include "commands/settle/settle_others.h"
#include "sha256.h"
#include "spawn.h"
#include "version.h"

#define LINKS_MS 5000
#define STALE_S (15 * 60L) /* a temporary file that nobody can be writing any more */

static const char NAME[] = "settle";

struct settling {
    struct {
        const char *path;   /* of this very file */
        const char *from;   /* directory in which the server is to be; NULL: where we are */
        const char *wanted; /* sums, separated by commas, of which this file has to have one */
        const char *links, *made;
        bool replaces, upgrades;
    } order;          /* what is to be done */
    int dir;          /* the file's, in which nobody else can change anything */
    const char *name; /* the one that it is to have; NULL: it has it */
    char *final;
    char *aside; /* the program that was there before, of which something runs; NULL: nothing does */
    struct {
        struct buf ended;         /* for --replace */
        struct buf moved, stayed; /* for --upgrade */
    } others;                     /* programs of other builds */
    const char *step, *state;
    char sha256[SHA256_HEX_SIZE];
    struct stat self;
    struct buf server;
    long long us[3]; /* proof, server, health */
};

static const char *base_name(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* The directory of a program, which is run by its path from now on. */
static int open_dir_of(const char *program, struct err *err)
{
    /* It is a path from the root. NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
    char *dir MEM_AUTO = mem_dup(program, (size_t)(strrchr(program, '/') - program));
    return safe_path_open(-1, *dir ? dir : "/", SAFE_NO_LINK | SAFE_ALONE, NULL, err);
}

/* ---- proof ---- */

/* The bytes that run, not those that the name leads to by now. */
static int prove(struct settling *s, struct err *err)
{
    char exe[64];
    snprintf(exe, sizeof exe, "/proc/%ld/exe", (long)getpid());
    int fd FD_AUTO = open(exe, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fd = openat(s->dir, base_name(s->order.path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &s->self) < 0 || sha256_file(fd, s->sha256) < 0)
        return err_sys(err, ERR_TOOL, errno, "%s cannot read itself", s->order.path);
    if (!strstr(s->order.wanted, s->sha256))
        return err_set(err, ERR_TOOL, "the sha256 there is %s, and should be %s", s->sha256, s->order.wanted);
    return 0;
}

/* ---- its name ---- */

static bool same_bytes(const struct settling *s)
{
    char hex[SHA256_HEX_SIZE];
    int fd FD_AUTO = openat(s->dir, s->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == s->self.st_size &&
           st.st_uid == s->self.st_uid && sha256_file(fd, hex) == 0 && strcmp(hex, s->sha256) == 0;
}

/* Runs a program to its end, without input or output, for so long. */
static int run_quietly(const char *path, char *const *arguments, int limit_ms)
{
    const char *const programs[] = {path, NULL};
    struct spawn spawned = {
        .programs = programs, .argv = arguments, .env = environ, .start_dir = -1, .fds = {-1, -1, -1}};
    pid_t pid = spawn(&spawned, NULL, NULL);
    if (pid < 0)
        return -1;
    int status = -1;
    for (long long until = now_ms() + limit_ms; now_ms() < until; usleep(2000))
        if (waitpid(pid, &status, WNOHANG) == pid)
            return status;
    kill(-pid, SIGKILL);
    waitpid(pid, &status, 0);
    return -1;
}

/* The build that was here before is the one again, with all that runs in it: nothing is left of this one. */
static void give_back(struct settling *s)
{
    if (s->aside && renameat(s->dir, s->aside, s->dir, s->name) == 0)
        s->state = "identical";
}

/* Also where several come at once: who finds his own bytes there leaves them. */
static int take_name(struct settling *s, struct err *err)
{
    const char *slash = strrchr(s->order.path, '/');
    s->final = mem_printf("%.*s/%s", (int)(slash - s->order.path), s->order.path, s->name);
    if (same_bytes(s)) {
        s->state = "identical";
        unlinkat(s->dir, base_name(s->order.path), 0);
        return fchmodat(s->dir, s->name, 0700, 0) == 0 ? 0 : err_sys(err, ERR_TOOL, errno, "%s", s->final);
    }
    s->state = io_is_there(s->dir, s->name) ? "replaced" : "placed";
    if (settle_keep_other(s->dir, s->final, &s->aside, err) < 0)
        return -1;
    if (renameat(s->dir, base_name(s->order.path), s->dir, s->name) == 0)
        return 0;
    err_sys(err, ERR_TOOL, errno, "cannot give it the name %s", s->final);
    give_back(s);
    return -1;
}

/* Makes a directory of ours private, which a runtime's copying has made for everybody; removes what others
 * who were cut off have left. */
static void tidy(const struct settling *s)
{
    if (strstr(s->final, "/" SETTLE_DIR))
        fchmod(s->dir, 0700);
    DIR *d DIR_AUTO = dir_read_again(s->dir);
    for (const char *name; (name = dir_next(d));) {
        struct stat st;
        if (strncmp(name, SETTLE_TEMPORARY, strlen(SETTLE_TEMPORARY)) == 0 &&
            fstatat(s->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            st.st_mtime < time(NULL) - STALE_S)
            unlinkat(s->dir, name, 0);
    }
}

/* ---- record and links ---- */

/* The directories above the server's possible places that are not there yet: "/run" in a bare image. */
static void missing_parents(struct buf *lines)
{
    struct buf path BUF_AUTO = BUF_INIT;
    for (unsigned n = 0; place_candidate(n, &path); n++) {
        char *above MEM_AUTO = mem_strdup(buf_str(&path)), *slash = strrchr(above, '/');
        for (; slash && slash > above && (*slash = '\0', access(above, F_OK) < 0) && errno == ENOENT;
             slash = strrchr(above, '/'))
            buf_addf(lines, "made %s\n", above);
    }
}

static int make_links(const struct settling *s, struct err *err)
{
    char program[] = "toolbox", option[] = "--install", symbolic[] = "-s";
    char *dir MEM_AUTO = mem_strdup(s->order.links);
    struct buf line BUF_AUTO = BUF_INIT;
    char *const arguments[] = {program, option, symbolic, dir, NULL};
    size_t made;
    int fd FD_AUTO = safe_path_open(-1, dir, SAFE_MAKE, &made, err);
    if (fd < 0)
        return err_wrap(err, "cannot make links");
    if (made > 0) {
        char *topmost MEM_AUTO = mem_dup(dir, made);
        fchmod(fd, 0755);
        settle_made(&line, dir, topmost);
    }
    buf_addf(&line, "links %s\n", dir);
    if (settle_record_add(s->dir, s->final, &line, err) < 0)
        return -1;
    if (run_quietly(s->final, arguments, LINKS_MS) != 0)
        return err_set(err, ERR_TOOL, "cannot make links in %s: try '%s --install -s %s' there", dir,
                       s->final, dir);
    return 0;
}

static int write_record(const struct settling *s, struct err *err)
{
    struct buf lines BUF_AUTO = BUF_INIT;
    char *dir MEM_AUTO = mem_dup(s->final, (size_t)(strrchr(s->final, '/') - s->final));
    if (s->order.made && *s->order.made)
        settle_made(&lines, dir, s->order.made);
    missing_parents(&lines);
    if (settle_record_add(s->dir, s->final, &lines, err) < 0)
        return -1;
    return s->order.links ? make_links(s, err) : 0;
}

/* ---- the whole ---- */

static int report(const struct settling *s, const struct err *failure, int status)
{
    struct buf out BUF_AUTO = BUF_INIT;
    buf_addc(&out, '{');
    json_member_bool(&out, "ok", !failure);
    json_member_string(&out, "path", s->final ? s->final : s->order.path);
    json_member_string(&out, "sha256", *s->sha256 ? s->sha256 : NULL);
    json_member_string(&out, "version", toolbox_version);
    json_member_string(&out, "build", toolbox_build_id);
    json_member_string(&out, "arch", os_arch());
    json_member_int(&out, "uid", geteuid());
    json_member_string(&out, "state", s->state);
    if (failure) {
        json_member_string(&out, "step", s->step);
        json_member_string(&out, "message", failure->msg);
    } else {
        static const char *const keys[] = {"proof_us", "server_us", "health_us"};
        json_member_string(&out, "server", buf_str(&s->server));
        for (int i = 0; i < 3; i++)
            json_member_int(&out, keys[i], s->us[i]);
        json_member_string(&out, "ended", s->others.ended.len > 0 ? s->others.ended.data : NULL);
        json_member_string(&out, "moved", s->others.moved.len > 0 ? s->others.moved.data : NULL);
        json_member_string(&out, "stayed", s->others.stayed.len > 0 ? s->others.stayed.data : NULL);
    }
    buf_adds(&out, "}\n");
    return io_write_all(STDOUT_FILENO, out.data, out.len) < 0 && status == EXIT_OK ? EXIT_FAILED : status;
}

static int refuse(struct settling *s, const struct err *err, int status)
{
    if (s->name && s->dir >= 0)
        unlinkat(s->dir, base_name(s->order.path), 0);
    return report(s, err, status);
}

static int move_others(struct settling *s, struct err *err)
{
    struct buf list BUF_AUTO = BUF_INIT;
    struct span entry, name, reason;
    if (upgrade_all(&list, err) < 0)
        return -1;
    for (size_t at = 0; json_element(span_of(&list), &at, &entry);) {
        bool stays = json_member(entry, "reason", &reason, NULL) && json_kind(reason) == JSON_STRING;
        struct buf *into = stays ? &s->others.stayed : &s->others.moved;
        buf_adds(into, into->len > 0 ? ", " : "");
        if (json_member(entry, "name", &name, NULL))
            json_string_text(name, into);
        buf_adds(into, stays ? " (" : "");
        if (stays)
            json_string_text(reason, into);
        buf_adds(into, stays ? ")" : "");
    }
    return 0;
}

static int settle(struct settling *s)
{
    struct err err;
    long long began = now_us();
    s->step = "placing";
    s->dir = open_dir_of(s->order.path, &err);
    if (s->dir < 0)
        return refuse(s, &err, SETTLE_ELSEWHERE);
    s->step = "proof";
    if (prove(s, &err) < 0)
        return refuse(s, &err, SETTLE_REFUSED);
    if (s->self.st_uid != geteuid() && s->name) {
        err_set(&err, ERR_TOOL, "what is written there belongs to somebody else (uid %u)",
                (unsigned)s->self.st_uid);
        return refuse(s, &err, SETTLE_ELSEWHERE);
    }
    s->us[0] = now_us() - began;
    s->step = "placing";
    if (s->name && take_name(s, &err) < 0)
        return refuse(s, &err, SETTLE_REFUSED);
    if (!s->name)
        s->final = mem_strdup(s->order.path);
    tidy(s);
    if (write_record(s, &err) < 0)
        return report(s, &err, SETTLE_REFUSED);
    s->step = "server";
    began = now_us();
    if (settle_start_server(s->order.from, &s->server, &err) < 0) {
        give_back(s);
        return report(s, &err, SETTLE_REFUSED);
    }
    s->us[1] = now_us() - began;
    s->step = "health";
    began = now_us();
    if (settle_check_server(&s->server, &err) < 0 ||
        (s->order.replaces && server_end_other_builds(&s->others.ended, &err) < 0))
        return report(s, &err, SETTLE_REFUSED);
    if (s->order.upgrades && move_others(s, &err) < 0)
        return report(s, &err, SETTLE_REFUSED);
    settle_sweep_others(s->dir, s->final);
    settle_mark(s->dir, s->final);
    settle_leave_no_orphan();
    s->us[2] = now_us() - began;
    return report(s, NULL, EXIT_OK);
}

static int remove_all(struct settling *s)
{
    struct err err;
    s->dir = open_dir_of(s->order.path, &err);
    if (s->dir < 0)
        return report(s, &err, SETTLE_ELSEWHERE);
    if (settle_remove(s->dir, s->order.path, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    printf("{\"ok\":true}\n");
    return stdout_flushed();
}

static int unpack_all(struct settling *s)
{
    struct err err;
    struct buf out BUF_AUTO = BUF_INIT;
    s->dir = open_dir_of(s->order.path, &err);
    const char *state = s->dir < 0 ? NULL : settle_unpack(STDIN_FILENO, s->dir, s->order.path, &err);
    buf_addc(&out, '{');
    json_member_bool(&out, "ok", state != NULL);
    json_member_string(&out, state ? "state" : "message", state ? state : err.msg);
    buf_adds(&out, "}\n");
    if (io_write_all(STDOUT_FILENO, out.data, out.len) < 0)
        return EXIT_FAILED;
    return state ? EXIT_OK : SETTLE_REFUSED;
}

enum what { SETTLE, REMOVE, UNPACK };

enum option_value {
    OPT_NONE,
    OPT_AT,
    OPT_NAME,
    OPT_SUMS,
    OPT_LINKS,
    OPT_MADE,
    OPT_FROM,
    N_TEXTS,
    OPT_REMOVE,
    OPT_UNPACK,
    OPT_REPLACE,
    OPT_UPGRADE
};

/* EXIT_OK, or EXIT_USAGE, said. */
static int take_options(int argc, char **argv, struct settling *s, enum what *what)
{
    static const struct option options[] = {
        {"at", 1, NULL, OPT_AT},
        {"name", 1, NULL, OPT_NAME},
        {"sums", 1, NULL, OPT_SUMS},
        {"links", 1, NULL, OPT_LINKS},
        {"made", 1, NULL, OPT_MADE},
        {"from", 1, NULL, OPT_FROM},
        {"remove", 0, NULL, OPT_REMOVE},
        {"unpack", 0, NULL, OPT_UNPACK},
        {"replace", 0, NULL, OPT_REPLACE},
        {"upgrade", 0, NULL, OPT_UPGRADE},
        {0},
    };
    const char **const texts[N_TEXTS] = {
        [OPT_AT] = &s->order.path,     [OPT_NAME] = &s->name,       [OPT_SUMS] = &s->order.wanted,
        [OPT_LINKS] = &s->order.links, [OPT_MADE] = &s->order.made, [OPT_FROM] = &s->order.from,
    };
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":", options, NULL)) >= 0;) {
        if (option < N_TEXTS)
            *texts[option] = optarg;
        else if (option == OPT_REMOVE || option == OPT_UNPACK)
            *what = option == OPT_REMOVE ? REMOVE : UNPACK;
        else if (option == OPT_REPLACE)
            s->order.replaces = true;
        else if (option == OPT_UPGRADE)
            s->order.upgrades = true;
        else
            return usage_unknown(NAME, "option", argv[optind - 1], NULL);
    }
    if (optind < argc || !s->order.path || s->order.path[0] != '/' || (*what == SETTLE && !s->order.wanted) ||
        (s->name && (!*s->name || strchr(s->name, '/'))))
        return usage_error(NAME, "--at PATH and --sums SHA256[,SHA256]..., --unpack or --remove are wanted");
    return EXIT_OK;
}

static void settling_release(struct settling *s)
{
    io_close(&s->dir);
    free(s->final);
    free(s->aside);
    buf_release(&s->server);
    buf_release(&s->others.ended);
    buf_release(&s->others.moved);
    buf_release(&s->others.stayed);
}

static int settle_main(int argc, char **argv)
{
    static int (*const run[])(struct settling *
                              s) = {[SETTLE] = settle, [REMOVE] = remove_all, [UNPACK] = unpack_all};
    enum what what = SETTLE;
    struct settling s = {.dir = -1,
                         .step = "placing",
                         .state = "identical",
                         .server = BUF_INIT,
                         .others = {.ended = BUF_INIT, .moved = BUF_INIT, .stayed = BUF_INIT}};
    int status = take_options(argc, argv, &s, &what);
    struct err err;
    if (status != EXIT_OK)
        return status;
    if (code_unpack(CODE_settle, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    signal(SIGPIPE, SIG_IGN);
    status = run[what](&s);
    settling_release(&s);
    return status;
}

const struct applet settle_applet = {
    .name = "settle",
    .summary = "the half of `inject` that runs inside: prove, name, start",
    .run = settle_main,
};
