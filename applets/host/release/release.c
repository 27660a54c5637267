/* The command line of releases: what is here, is it right, get it. */
#include "release.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "commands/exec/command_print.h"
#include "io.h"
#include "mem.h"
#include "osinfo.h"
#include "relocate.h"
#include "release_fetch.h"
#include "release_folder.h"
#include "self.h"
#include "version.h"
#include "words.h"

static const char NAME[] = "release";

enum { N_ARCHES = 7, KEY_MAX = 65536 };

static const char *const arches[N_ARCHES + 1] = {"amd64",   "arm64",   "armv7", "i386",
                                                 "ppc64le", "riscv64", "s390x", NULL};

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

static int do_list(const struct command_line *c)
{
    static const char *const columns[] = {"arch", "size", "sha256", "build", "packed", "path", NULL};
    struct buf files BUF_AUTO = BUF_INIT;
    int bad = collect(&files);
    int status = command_print_table(c, span_of(&files), columns);
    return status == EXIT_OK ? bad : status;
}

/* ---- verify ---- */

static int read_key(const struct command_line *c, struct buf *key)
{
    buf_init(key, KEY_MAX);
    const char *file = command_value(c, "key");
    if (!file)
        buf_adds(key, toolbox_public_key);
    else if (io_read_file(AT_FDCWD, file, key) < 0)
        return applet_failed(NAME, "can't read the key %s: %s", file, err_text(errno));
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

static int do_verify(const struct command_line *c)
{
    bool as_json = command_value(c, "json");
    if (c->n_words == 0)
        return do_list(c);
    struct buf key BUF_AUTO = BUF_INIT, json BUF_AUTO = BUF_INIT;
    struct err err;
    if (read_key(c, &key) != EXIT_OK)
        return EXIT_FAILED;
    if (code_unpack(CODE_tls, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    buf_addc(&json, '[');
    int result =
        release_folder_verify(c->words[0], buf_str(&key), print_verdict, as_json ? &json : NULL, &err);
    if (result < 0)
        return applet_failed(NAME, "%s", err.msg);
    if (as_json)
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

static int do_path(const struct command_line *c)
{
    struct release_file file RELEASE_FILE_AUTO = RELEASE_FILE_INIT;
    struct err err;
    const char *arch = c->n_words > 0 ? c->words[0] : os_arch(), *to = command_value(c, "to");
    if (release_pick("linux", arch, &file, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    if (to)
        return write_to(to, arch, &file);
    if (file.packed)
        return applet_failed(NAME, "it is packed into %s: --to DIR makes a file of it", file.path);
    puts(file.path);
    return stdout_flushed();
}

/* ---- fetch ---- */

static bool is_arch(const char *word)
{
    for (size_t i = 0; i < N_ARCHES; i++)
        if (strcmp(word, arches[i]) == 0)
            return true;
    return false;
}

static int take_arches(const struct command_line *c, struct release_fetch *f, const char *list[N_ARCHES])
{
    f->arches = list;
    for (size_t i = 0; i < c->n_given; i++) {
        const char *word = c->given[i].value;
        if (strcmp(c->given[i].option->name, "arch") != 0)
            continue;
        if (!is_arch(word))
            return usage_unknown(NAME, "architecture", word, arches);
        if (f->n_arches < N_ARCHES)
            list[f->n_arches++] = word;
    }
    return EXIT_OK;
}

static int take_timeout(const struct command_line *c, struct release_fetch *f)
{
    const char *word = command_value(c, "timeout");
    double seconds = 30;
    int status = word ? words_seconds(NAME, "--timeout", word, 0.001, 86400, &seconds) : EXIT_OK;
    f->options.timeout_ms = (int)(seconds * 1000);
    return status;
}

/* Where to, by default: `self` is the program's own path. */
static const char *folder_of(char *self)
{
    const char *variable = getenv(RELEASE_DIR_VARIABLE);
    if (variable && *variable)
        return variable;
    if (!self || !strrchr(self, '/'))
        return NULL;
    *strrchr(self, '/') = '\0';
    return *self ? self : "/";
}

static int do_fetch(const struct command_line *c)
{
    char *self MEM_AUTO = self_path();
    const char *list[N_ARCHES];
    struct release_fetch f = {.url = c->words[0], .dir = command_value(c, "dir")};
    struct buf key BUF_AUTO = BUF_INIT;
    struct err err;
    f.options.trust = command_value(c, "ca");
    if (take_arches(c, &f, list) != EXIT_OK || take_timeout(c, &f) != EXIT_OK)
        return EXIT_USAGE;
    if (read_key(c, &key) != EXIT_OK)
        return EXIT_FAILED;
    f.key = buf_str(&key);
    if (!f.dir)
        f.dir = folder_of(self);
    if (!f.dir)
        return usage_error(NAME, "where to? (--dir DIR)");
    if (code_unpack(CODE_tls, &err) < 0 || release_fetch(&f, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    return stdout_flushed();
}

/* ---- the table ---- */

static const struct command_option options[] = {
    {"arch", "ARCH",
     "amd64, arm64, armv7, i386, ppc64le, riscv64 or s390x; may be given several times (all that there are)",
     0},
    {"dir", "DIR", "where to ($TOOLBOX_RELEASE_DIR, else the program's folder)", 0},
    {"to", "DIR", "put it there, if it isn't a file of its own, or is elsewhere", 0},
    {"key", "FILE", "public key (PEM, ECDSA P-256) of who signs the release, for the one compiled in", 0},
    {"ca", "FILE", "certificates to trust, for the system's", 0},
    {"timeout", COMMAND_TIME, "how long the server may be silent, such as 2m (30 seconds)", 0},
    COMMAND_LIST_OPTIONS,
    {0},
};

static const struct command list[] = {
    {"list", "", COMMAND_LIST_TAKES, "show the binaries that can be had here", NULL, "--format arch,path", 0,
     0, do_list, NULL},
    {"verify", "[DIR]", "json key", "verify them, or a folder with a release",
     "Of a folder: its signature, and every file's sum.", "/srv/toolbox-0.1.0", 0, 1, do_verify, NULL},
    {"path", "[ARCH]", "to", "print where a verified one is (this machine's)", NULL, "arm64 --to /tmp", 0, 1,
     do_path, NULL},
    {"fetch", "URL", "dir arch ca key timeout", "get a release over https into a folder",
     "What was cut off is gone on with; a file gets its name once it is verified, by SHA256SUMS and its "
     "signature, or "
     "without a key by the sums behind this program.",
     "https://example.org/toolbox/0.1.0/ --arch arm64", 1, 1, do_fetch, NULL},
    {0},
};

static const struct command_set commands = {
    .about =
        "The binaries of exactly this build, for each architecture. They are packed into the self-contained "
        "program (toolbox-VERSION-linux-ARCH-all), or lie as toolbox-VERSION-linux-ARCH in "
        "$TOOLBOX_RELEASE_DIR "
        "or beside the program. Every one is verified by the sums behind this program; nothing else is ever "
        "used.",
    .more = "Exit status: 0 fine, 1 something isn't there or isn't right, 2 usage.",
    .options = options,
    .list = list,
};

const struct applet release_applet = {
    .name = "release",
    .summary = "this build's binaries for other machines: list, verify, fetch",
    .commands = &commands,
};
