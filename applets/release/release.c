/* The command line of releases: what is here, is it right, get it. */
#include "release.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "applet.h"
#include "io.h"
#include "json_table.h"
#include "mem.h"
#include "osinfo.h"
#include "release_fetch.h"
#include "release_folder.h"
#include "self.h"
#include "version.h"

static const char NAME[] = "release";

static const char usage[] =
    "Usage: toolbox release list [--json]\n"
    "       toolbox release verify [--json] [--key FILE] [DIR]\n"
    "       toolbox release path [--to DIR] [ARCH]\n"
    "       toolbox release fetch [--dir DIR] [--arch ARCH]... [--ca FILE]\n"
    "                             [--key FILE] [--timeout SECONDS] URL\n"
    "\n"
    "The binaries of exactly this build, for each architecture. They are packed into\n"
    "the self-contained program (toolbox-VERSION-linux-ARCH-all), or lie as\n"
    "toolbox-VERSION-linux-ARCH in $TOOLBOX_RELEASE_DIR or beside the program. Every\n"
    "one is verified by the sums behind this program; nothing else is ever used.\n"
    "\n"
    "  list    those that can be had here\n"
    "  verify  them, and a folder with a release: its signature, every file's sum\n"
    "  path    where a verified one is (default: this machine's architecture)\n"
    "  fetch   gets a release over https into a folder. What was cut off is gone on\n"
    "          with; a file gets its name once it is verified, by SHA256SUMS and its\n"
    "          signature, or without a key by the sums behind this program\n"
    "\n"
    "  --arch ARCH     amd64, arm64, armv7, i386, ppc64le, riscv64 or s390x; may be\n"
    "                  given several times (default: all that there are)\n"
    "  --dir DIR       where to ($TOOLBOX_RELEASE_DIR, else the program's folder)\n"
    "  --to DIR        put it there, if it isn't a file of its own, or is elsewhere\n"
    "  --key FILE      public key (PEM, ECDSA P-256) of who signs the release, for\n"
    "                  the one compiled in\n"
    "  --ca FILE       certificates to trust, for the system's\n"
    "  --timeout S     how long the server may be silent (30)\n"
    "  --json          for programs (list and verify)\n"
    "  --help          this text\n"
    "\n"
    "Exit status: 0 fine, 1 something isn't there or isn't right, 2 usage.\n";

enum { OPT_JSON = 256, OPT_DIR, OPT_TO, OPT_ARCH, OPT_CA, OPT_KEY, OPT_TIMEOUT };
enum { N_ARCHES = 7, KEY_MAX = 65536 };

static const char *const arches[N_ARCHES + 1] = {"amd64",   "arm64",   "armv7", "i386",
                                                 "ppc64le", "riscv64", "s390x", NULL};

static const struct option options[] = {
    {"json", 0, NULL, OPT_JSON},       {"dir", 1, NULL, OPT_DIR},
    {"to", 1, NULL, OPT_TO},           {"arch", 1, NULL, OPT_ARCH},
    {"ca", 1, NULL, OPT_CA},           {"key", 1, NULL, OPT_KEY},
    {"timeout", 1, NULL, OPT_TIMEOUT}, {0},
};

struct command_line {
    const char *command, *word; /* word: what follows; NULL: nothing */
    bool json;
    const char *to, *key_file;
    const char *arches[N_ARCHES];
    struct release_fetch fetch;
};

/* ---- list ---- */

static void put_file(struct buf *out, const char *arch, const struct release_file *file,
                     const struct err *err)
{
    if (out->len > 1)
        buf_addc(out, ',');
    buf_addc(out, '{');
    json_member_string(out, "arch", arch);
    if (err) {
        json_member_string(out, "error", err->msg);
    } else {
        json_member_int(out, "size", (long long)file->bytes.len);
        json_member_string(out, "sha256", file->sha256);
        json_member_string(out, "build", file->build);
        json_member_string(out, "path", file->path);
        json_member_bool(out, "packed", file->packed);
    }
    buf_addc(out, '}');
}

/* Every architecture's file that is somewhere; 1 when one of them is wrong. */
static int collect(struct buf *out)
{
    int bad = EXIT_OK;
    buf_addc(out, '[');
    for (size_t i = 0; i < N_ARCHES; i++) {
        struct release_file file RELEASE_FILE_AUTO = RELEASE_FILE_INIT;
        struct err err;
        int result = release_pick("linux", arches[i], &file, &err);
        if (result == 0) {
            put_file(out, arches[i], &file, NULL);
        } else if (file.path || strcmp(arches[i], os_arch()) == 0) { /* there is one, but it isn't right */
            put_file(out, arches[i], NULL, &err);
            fprintf(stderr, "toolbox %s: %s\n", NAME, err.msg);
            bad = EXIT_FAILED;
        }
    }
    buf_addc(out, ']');
    return bad;
}

static int list(const struct command_line *c)
{
    static const char *const columns[] = {"arch", "size", "sha256", "build", "packed", "path", NULL};
    struct buf files BUF_AUTO = BUF_INIT, text BUF_AUTO = BUF_INIT;
    int bad = collect(&files);
    if (c->json)
        buf_addf(&text, "%s\n", buf_str(&files));
    else
        json_table(&text, span_of(&files), columns);
    if (io_write_all(STDOUT_FILENO, text.data, text.len) < 0)
        return applet_failed(NAME, "cannot write: %s", err_text(errno));
    return bad;
}

/* ---- verify ---- */

static int read_key(const struct command_line *c, struct buf *key)
{
    buf_init(key, KEY_MAX);
    if (!c->key_file)
        buf_adds(key, toolbox_public_key);
    else if (io_read_file(AT_FDCWD, c->key_file, key) < 0)
        return applet_failed(NAME, "can't read the key %s: %s", c->key_file, err_text(errno));
    return EXIT_OK;
}

static void print_verdict(void *arg, const struct release_verdict *verdict)
{
    struct buf *json = arg;
    if (!json) {
        printf("%-8s %s: %s\n", verdict->bad ? "REFUSED" : "ok", verdict->name, verdict->text);
        return;
    }
    if (json->len > 1)
        buf_addc(json, ',');
    buf_addc(json, '{');
    json_member_string(json, "name", verdict->name);
    json_member_bool(json, "ok", !verdict->bad);
    json_member_string(json, "verdict", verdict->text);
    buf_addc(json, '}');
}

static int verify(const struct command_line *c)
{
    if (!c->word)
        return list(c);
    struct buf key BUF_AUTO = BUF_INIT, json BUF_AUTO = BUF_INIT;
    struct err err;
    if (read_key(c, &key) != EXIT_OK)
        return EXIT_FAILED;
    buf_addc(&json, '[');
    int result = release_folder_verify(c->word, buf_str(&key), print_verdict, c->json ? &json : NULL, &err);
    if (result < 0)
        return applet_failed(NAME, "%s", err.msg);
    if (c->json)
        printf("%s]\n", buf_str(&json));
    return stdout_flushed() != EXIT_OK || result > 0 ? EXIT_FAILED : EXIT_OK;
}

/* ---- path ---- */

/* Writes the file beside its final name first: it is there whole or not at all. */
static int write_to(const char *dir, const char *arch, const struct release_file *file)
{
    char *path MEM_AUTO = mem_printf("%s/toolbox-%s-linux-%s", dir, toolbox_version, arch);
    char *part MEM_AUTO = mem_printf("%s/.toolbox-%s.%ld", dir, arch, (long)getpid());
    if (mkdir(dir, 0755) < 0 && errno != EEXIST)
        return applet_failed(NAME, "can't make the directory %s: %s", dir, err_text(errno));
    int fd FD_AUTO = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0700);
    if (fd < 0)
        return applet_failed(NAME, "can't write in %s: %s", dir, err_text(errno));
    if (io_write_all(fd, file->bytes.data, file->bytes.len) < 0 || fchmod(fd, 0755) < 0 || fsync(fd) < 0 ||
        rename(part, path) < 0) {
        int failed = errno;
        unlink(part);
        return applet_failed(NAME, "can't write %s: %s", path, err_text(failed));
    }
    puts(path);
    return stdout_flushed();
}

static int path(const struct command_line *c)
{
    struct release_file file RELEASE_FILE_AUTO = RELEASE_FILE_INIT;
    struct err err;
    const char *arch = c->word ? c->word : os_arch();
    if (c->json)
        return usage_error(NAME, "path prints a path; --json is for list and verify");
    if (release_pick("linux", arch, &file, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    if (c->to)
        return write_to(c->to, arch, &file);
    if (file.packed)
        return applet_failed(NAME, "it is packed into %s: --to DIR makes a file of it", file.path);
    puts(file.path);
    return stdout_flushed();
}

/* ---- fetch ---- */

static int fetch(struct command_line *c)
{
    char *self MEM_AUTO = self_path();
    const char *variable = getenv(RELEASE_DIR_VARIABLE);
    struct buf key BUF_AUTO = BUF_INIT;
    struct err err;
    if (c->json)
        return usage_error(NAME, "fetch prints text; --json is for list and verify");
    if (!c->word)
        return usage_error(NAME, "fetch needs the address of a release");
    if (read_key(c, &key) != EXIT_OK)
        return EXIT_FAILED;
    c->fetch.url = c->word;
    c->fetch.key = buf_str(&key);
    c->fetch.arches = c->arches;
    if (!c->fetch.dir && variable && *variable)
        c->fetch.dir = variable;
    if (!c->fetch.dir && self && strrchr(self, '/')) {
        *strrchr(self, '/') = '\0';
        c->fetch.dir = *self ? self : "/";
    }
    if (!c->fetch.dir)
        return usage_error(NAME, "where to? (--dir DIR)");
    if (release_fetch(&c->fetch, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    return stdout_flushed();
}

/* ---- the command line ---- */

static bool is_arch(const char *word)
{
    for (size_t i = 0; i < N_ARCHES; i++)
        if (strcmp(word, arches[i]) == 0)
            return true;
    return false;
}

static int take_option(struct command_line *c, int option, const char *word)
{
    static const char *const known[] = {"--json", "--dir",     "--to",   "--arch", "--ca",
                                        "--key",  "--timeout", "--help", NULL};
    char *end;
    long seconds;
    switch (option) {
    case OPT_JSON:
        c->json = true;
        return EXIT_OK;
    case OPT_DIR:
        c->fetch.dir = optarg;
        return EXIT_OK;
    case OPT_TO:
        c->to = optarg;
        return EXIT_OK;
    case OPT_CA:
        c->fetch.options.trust = optarg;
        return EXIT_OK;
    case OPT_KEY:
        c->key_file = optarg;
        return EXIT_OK;
    case OPT_ARCH:
        if (!is_arch(optarg))
            return usage_unknown(NAME, "architecture", optarg, arches);
        if (c->fetch.n_arches < N_ARCHES)
            c->arches[c->fetch.n_arches++] = optarg;
        return EXIT_OK;
    case OPT_TIMEOUT:
        seconds = strtol(optarg, &end, 10);
        if (end == optarg || *end || seconds < 1 || seconds > 86400)
            return usage_error(NAME, "'%s' is no number of seconds", optarg);
        c->fetch.options.timeout_ms = (int)seconds * 1000;
        return EXIT_OK;
    case ':':
        return usage_error(NAME, "%s needs a value", word);
    default:
        return usage_unknown(NAME, "option", word, known);
    }
}

static int release_run(int argc, char **argv)
{
    static const char *const commands[] = {"list", "verify", "path", "fetch", NULL};
    struct command_line c = {.fetch.options.timeout_ms = 30000};
    opterr = 0;
    for (;;) {
        int at = optind, option = getopt_long(argc, argv, ":", options, NULL);
        if (option < 0)
            break;
        int result = take_option(&c, option, argv[at]);
        if (result != EXIT_OK)
            return result;
    }
    c.command = argv[optind];
    if (!c.command)
        return usage_error(NAME, "which command? (list, verify, path or fetch)");
    c.word = argv[optind + 1];
    if (c.word && argv[optind + 2])
        return usage_error(NAME, "'%s' is one argument too many", argv[optind + 2]);
    if (strcmp(c.command, "list") == 0 && !c.word)
        return list(&c);
    if (strcmp(c.command, "verify") == 0)
        return verify(&c);
    if (strcmp(c.command, "path") == 0)
        return path(&c);
    if (strcmp(c.command, "fetch") == 0)
        return fetch(&c);
    return usage_unknown(NAME, c.word ? "argument" : "command", c.word ? c.word : c.command, commands);
}

const struct applet release_applet = {
    .name = "release",
    .summary = "this build's binaries for other machines: list, verify, fetch",
    .usage = usage,
    .run = release_run,
};
