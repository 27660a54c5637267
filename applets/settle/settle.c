#include "settle/settle.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "osinfo.h"
#include "place.h"
#include "proc.h"
#include "rpc.h"
#include "server/server.h"
#include "sha256.h"
#include "spawn.h"
#include "version.h"

#define HEALTH_MS 5000
#define OTHER_MS 8000      /* for another build's server to stop */
#define STALE_S (15 * 60L) /* a temporary file that nobody can be writing any more */

static const char NAME[] = "settle";

struct settling {
    const char *path;   /* of this very file, as it was started */
    const char *name;   /* the one that it is to have; NULL: it has it */
    const char *wanted; /* sums, separated by commas, of which this file has to have one */
    const char *links;
    const char *made;
    char *final;
    const char *step, *state;
    char sha256[SHA256_HEX_SIZE];
    struct stat self;
    struct buf server;
    long long us[3]; /* proof, server, health */
};

/* ---- proof ---- */

/* The bytes that run, not those that the name leads to by now. */
static int prove(struct settling *s, struct err *err)
{
    char exe[64];
    snprintf(exe, sizeof exe, "/proc/%ld/exe", (long)getpid());
    int fd FD_AUTO = open(exe, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &s->self) < 0 || sha256_file(fd, s->sha256) < 0)
        return err_sys(err, ERR_TOOL, errno, "%s cannot read itself", s->path);
    if (!strstr(s->wanted, s->sha256))
        return err_set(err, ERR_TOOL, "the sha256 there is %s, and should be %s", s->sha256, s->wanted);
    return 0;
}

/* ---- its name ---- */

static bool same_bytes(const char *path, const struct settling *s)
{
    char hex[SHA256_HEX_SIZE];
    int fd FD_AUTO = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
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

/* Nobody could reach the server of the build that is replaced: it goes with its program. */
static void stop_other(const struct settling *s)
{
    struct stat st;
    char program[] = "toolbox", command[] = "stop-server", *const arguments[] = {program, command, NULL};
    if (lstat(s->final, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid())
        run_quietly(s->final, arguments, OTHER_MS);
}

/* Also where several come at once: who finds his own bytes there leaves them. */
static int take_name(struct settling *s, struct err *err)
{
    const char *slash = strrchr(s->path, '/');
    s->final = mem_printf("%.*s/%s", (int)(slash - s->path), s->path, s->name);
    if (same_bytes(s->final, s)) {
        s->state = "identical";
        unlink(s->path);
        return chmod(s->final, 0700) == 0 ? 0 : err_sys(err, ERR_TOOL, errno, "%s", s->final);
    }
    s->state = access(s->final, F_OK) == 0 ? "replaced" : "placed";
    stop_other(s);
    if (rename(s->path, s->final) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot give it the name %s", s->final);
    return 0;
}

/* Makes a directory of ours private, which a runtime's copying has made for everybody; removes what others
 * who were cut off have left. */
static void tidy(const char *path)
{
    char *dir MEM_AUTO = mem_dup(path, (size_t)(strrchr(path, '/') - path));
    if (strstr(dir, "/" SETTLE_DIR))
        chmod(dir, 0700);
    DIR *d = opendir(*dir ? dir : "/");
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        struct stat st;
        if (strncmp(e->d_name, SETTLE_TEMPORARY, strlen(SETTLE_TEMPORARY)) == 0 &&
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            st.st_mtime < time(NULL) - STALE_S)
            unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d)
        closedir(d);
}

/* ---- record and links ---- */

char *settle_record_path(const char *program)
{
    const char *slash = strrchr(program, '/');
    return mem_printf("%.*s/.%s.inject", (int)(slash - program), program, slash + 1);
}

char *settle_with_path(const char *program)
{
    const char *slash = strrchr(program, '/');
    return mem_printf("%.*s/.%s.with", (int)(slash - program), program, slash + 1);
}

void settle_made(struct buf *record, const char *dir, const char *topmost)
{
    size_t n = strlen(dir), least = strlen(topmost);
    while (n >= least && n > 0) {
        buf_addf(record, "made %.*s\n", (int)n, dir);
        while (n > 0 && dir[--n] != '/')
            continue;
    }
}

/* Lines that are there already are not added again: it is the same program that has been here before. */
static int add_to_record(const struct settling *s, const struct buf *lines, struct err *err)
{
    char *path MEM_AUTO = settle_record_path(s->final);
    struct buf before BUF_AUTO = {.max = 1u << 20};
    if (lines->len == 0)
        return 0;
    if (io_read_file(AT_FDCWD, path, &before) == 0 && strstr(buf_str(&before), lines->data))
        return 0;
    int fd FD_AUTO = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || io_write_all(fd, lines->data, lines->len) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot write %s", path);
    return 0;
}

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

/* As `mkdir -p`; appends the lines for what was made. */
static int make_dirs(const char *dir, struct buf *record)
{
    size_t first = 0;
    for (size_t n = 1; n > 0; n = dir[n] ? n + 1 : 0) {
        n += strcspn(dir + n, "/");
        char *prefix MEM_AUTO = mem_dup(dir, n);
        if (mkdir(prefix, 0755) == 0)
            first = first > 0 ? first : n;
        else if (access(prefix, F_OK) < 0)
            return -1;
    }
    char *topmost MEM_AUTO = mem_dup(dir, first);
    if (first > 0)
        settle_made(record, dir, topmost);
    return 0;
}

static int make_links(const struct settling *s, struct err *err)
{
    char program[] = "toolbox", option[] = "--install", symbolic[] = "-s";
    char *dir MEM_AUTO = mem_strdup(s->links);
    struct buf line BUF_AUTO = BUF_INIT;
    char *const arguments[] = {program, option, symbolic, dir, NULL};
    if (make_dirs(dir, &line) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot make the directory %s for links", dir);
    buf_addf(&line, "links %s\n", dir);
    if (add_to_record(s, &line, err) < 0)
        return -1;
    if (run_quietly(s->final, arguments, HEALTH_MS) != 0)
        return err_set(err, ERR_TOOL, "cannot make links in %s: try '%s --install -s %s' there", dir,
                       s->final, dir);
    return 0;
}

static int write_record(const struct settling *s, struct err *err)
{
    struct buf lines BUF_AUTO = BUF_INIT;
    char *dir MEM_AUTO = mem_dup(s->final, (size_t)(strrchr(s->final, '/') - s->final));
    if (s->made && *s->made)
        settle_made(&lines, dir, s->made);
    missing_parents(&lines);
    return add_to_record(s, &lines, err) < 0 || (s->links && make_links(s, err) < 0) ? -1 : 0;
}

/* ---- server and health ---- */

/* Asks the server who it is; the first question starts it. */
static int ask_server(struct buf *text, struct err *err)
{
    struct buf request BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct span result;
    int fd FD_AUTO = -1;
    rpc_put_request(&request, (struct span){"1", 1}, "remote_version", (struct span){0});
    if (server_call(&fd, span_of(&request), true, HEALTH_MS, &answer, err) < 0 ||
        client_result(span_of(&answer), &result, err) < 0)
        return -1;
    client_delivered(fd);
    text->len = 0;
    json_string_text(result, text);
    return 0;
}

/* The server keeps the environment of its starter, which is to be that of any program here: what the shell
 * that started us has put in goes. */
static int start_server(struct settling *s, struct err *err)
{
    static const char *const of_shells[] = {"_", "OLDPWD", "SHLVL"};
    for (size_t i = 0; i < sizeof of_shells / sizeof *of_shells; i++)
        unsetenv(of_shells[i]);
    return ask_server(&s->server, err);
}

static int check_health(struct settling *s, struct err *err)
{
    struct buf again BUF_AUTO = BUF_INIT;
    if (ask_server(&again, err) < 0)
        return -1;
    if (strcmp(buf_str(&again), buf_str(&s->server)) != 0)
        return err_set(err, ERR_TOOL, "the server that was started ('%s') is not the one that answers ('%s')",
                       buf_str(&s->server), buf_str(&again));
    return 0;
}

/* ---- the whole ---- */

static int report(const struct settling *s, const struct err *failure, int status)
{
    struct buf out BUF_AUTO = BUF_INIT;
    buf_addc(&out, '{');
    json_member_bool(&out, "ok", !failure);
    json_member_string(&out, "path", s->final ? s->final : s->path);
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
    }
    buf_adds(&out, "}\n");
    return io_write_all(STDOUT_FILENO, out.data, out.len) < 0 && status == EXIT_OK ? EXIT_FAILED : status;
}

static int refuse(struct settling *s, const struct err *err, int status)
{
    if (s->name && strcmp(s->step, "proof") == 0)
        unlink(s->path);
    return report(s, err, status);
}

static int settle(struct settling *s)
{
    struct err err;
    long long began = now_us();
    s->step = "proof";
    if (prove(s, &err) < 0)
        return refuse(s, &err, SETTLE_REFUSED);
    if (s->self.st_uid != geteuid() && s->name) {
        err_set(&err, ERR_TOOL, "what uid %u writes there belongs to uid %u", (unsigned)geteuid(),
                (unsigned)s->self.st_uid);
        return refuse(s, &err, SETTLE_ELSEWHERE);
    }
    s->us[0] = now_us() - began;
    s->step = "placing";
    if (s->name && take_name(s, &err) < 0) {
        unlink(s->path);
        return report(s, &err, SETTLE_REFUSED);
    }
    if (!s->name)
        s->final = mem_strdup(s->path);
    tidy(s->final);
    if (write_record(s, &err) < 0)
        return report(s, &err, SETTLE_REFUSED);
    s->step = "server";
    began = now_us();
    if (start_server(s, &err) < 0)
        return report(s, &err, SETTLE_REFUSED);
    s->us[1] = now_us() - began;
    s->step = "health";
    began = now_us();
    if (check_health(s, &err) < 0)
        return report(s, &err, SETTLE_REFUSED);
    s->us[2] = now_us() - began;
    return report(s, NULL, EXIT_OK);
}

static int remove_all(const char *path)
{
    struct err err;
    if (settle_remove(path, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    printf("{\"ok\":true}\n");
    return stdout_flushed();
}

static int unpack_all(const char *path)
{
    struct err err;
    struct buf out BUF_AUTO = BUF_INIT;
    const char *state = settle_unpack(STDIN_FILENO, path, &err);
    buf_addc(&out, '{');
    json_member_bool(&out, "ok", state != NULL);
    json_member_string(&out, state ? "state" : "message", state ? state : err.msg);
    buf_adds(&out, "}\n");
    if (io_write_all(STDOUT_FILENO, out.data, out.len) < 0)
        return EXIT_FAILED;
    return state ? EXIT_OK : SETTLE_REFUSED;
}

enum { OPT_AT = 256, OPT_NAME, OPT_SUMS, OPT_LINKS, OPT_MADE, OPT_REMOVE, OPT_UNPACK };

static int settle_main(int argc, char **argv)
{
    static const struct option options[] = {
        {"at", 1, NULL, OPT_AT},         {"name", 1, NULL, OPT_NAME},
        {"sums", 1, NULL, OPT_SUMS},     {"links", 1, NULL, OPT_LINKS},
        {"made", 1, NULL, OPT_MADE},     {"remove", 0, NULL, OPT_REMOVE},
        {"unpack", 0, NULL, OPT_UNPACK}, {0},
    };
    struct settling s = {.state = "identical", .server = BUF_INIT};
    bool removes = false, unpacks = false;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":", options, NULL)) >= 0;) {
        switch (option) {
        case OPT_AT:
            s.path = optarg;
            break;
        case OPT_NAME:
            s.name = optarg;
            break;
        case OPT_SUMS:
            s.wanted = optarg;
            break;
        case OPT_LINKS:
            s.links = optarg;
            break;
        case OPT_MADE:
            s.made = optarg;
            break;
        case OPT_REMOVE:
            removes = true;
            break;
        case OPT_UNPACK:
            unpacks = true;
            break;
        default:
            return usage_unknown(NAME, "option", argv[optind - 1], NULL);
        }
    }
    if (optind < argc || !s.path || s.path[0] != '/' || (!removes && !unpacks && !s.wanted) ||
        (s.name && (!*s.name || strchr(s.name, '/'))))
        return usage_error(NAME, "--at PATH and --sums SHA256[,SHA256]..., --unpack or --remove are wanted");
    signal(SIGPIPE, SIG_IGN);
    int status = removes ? remove_all(s.path) : unpacks ? unpack_all(s.path) : settle(&s);
    free(s.final);
    buf_release(&s.server);
    return status;
}

const struct applet settle_applet = {
    .name = "settle",
    .summary = "the half of `inject` that runs inside: prove, name, start",
    .usage = "Usage: toolbox settle --at PATH --sums SHA256[,SHA256]... [--name NAME]\n"
             "                      [--links DIR] [--made DIR]\n"
             "       toolbox settle --at PATH --unpack | --remove\n"
             "\n"
             "What `toolbox inject` and `toolbox eject` run inside a target; nobody else has\n"
             "to. PATH is this very file. It proves that it has one of the sums, takes NAME in\n"
             "its directory, makes links of all applets in DIR, starts the server and checks\n"
             "that it answers; or takes a folder from stdin and puts it beside itself; or\n"
             "stops the server and removes everything. One JSON object is printed.\n"
             "\n"
             "Exit status: 0 done, 1 something is left, 2 usage, 3 refused (the object says\n"
             "why), 4 not in this directory.\n",
    .run = settle_main,
};
