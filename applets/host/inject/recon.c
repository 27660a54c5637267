#include "host/inject/recon.h"

#include <stdlib.h>
#include <string.h>

#include "host/inject/script.h"
#include "host/inject/transport.h"
#include "mem.h"
#include "osinfo.h"

/* What uname says, and what a release calls it. */
static const struct machine {
    const char *machine, *arch;
} machines[] = {
    {"x86_64", "amd64"},  {"amd64", "amd64"},     {"aarch64", "arm64"}, {"arm64", "arm64"},
    {"AARCH64", "arm64"}, {"armv7l", "armv7"},    {"armv8l", "armv7"},  {"riscv64", "riscv64"},
    {"s390x", "s390x"},   {"ppc64le", "ppc64le"}, {"i686", "i386"},     {"i586", "i386"},
    {"i386", "i386"},     {NULL, NULL},
};

/* e_machine, class and byte order of an ELF header, of which a shell keeps no zeros. */
static const struct elf {
    const char *machine, *arch; /* bits, byte order, then the machine's number behind the type's */
} elfs[] = {
    {"\2\1\x3e", "amd64"}, {"\2\1\xb7", "arm64"},   {"\1\1\x28", "armv7"}, {"\2\1\xf3", "riscv64"},
    {"\2\2\x16", "s390x"}, {"\2\1\x15", "ppc64le"}, {"\1\1\x03", "i386"},  {NULL, NULL},
};

bool recon_line(struct span text, size_t *at, struct span *line)
{
    if (*at >= text.n)
        return false;
    const char *from = text.s + *at, *end = memchr(from, '\n', text.n - *at);
    *line = (struct span){from, end ? (size_t)(end - from) : text.n - *at};
    *at += line->n + 1;
    return true;
}

void recon_member(struct span object, const char *key, struct buf *text)
{
    struct span value;
    if (!object.s || !json_member(object, key, &value, NULL))
        return;
    if (json_kind(value) == JSON_STRING)
        json_string_text(value, text);
    else if (json_kind(value) != JSON_NULL)
        buf_add(text, value.s, value.n);
}

static void copy(char *to, size_t size, struct span value)
{
    size_t n = value.n < size ? value.n : size - 1;
    memcpy(to, value.s, n);
    to[n] = '\0';
}

/* "\177ELF", class, byte order, version, then (zeros are gone) perhaps the ABI, the type and the machine. */
static void read_elf(struct recon *r, struct span value)
{
    char head[12];
    size_t n = 0;
    r->no_uname = true;
    for (size_t i = 0; i < value.n && n < sizeof head; i++)
        if (value.s[i])
            head[n++] = value.s[i];
    if (n < 9 || memcmp(head, "\177ELF", 4) != 0)
        return;
    for (const struct elf *e = elfs; e->machine; e++)
        if (memcmp(head + 4, e->machine, 2) == 0 && (head[8] == e->machine[2] || head[9] == e->machine[2]))
            snprintf(r->loader_arch, sizeof r->loader_arch, "%s", e->arch);
}

/* NAME=value or NAME="value" of os-release; the name for people wins. */
static void read_release(struct recon *r, struct span value)
{
    struct span equals = {memchr(value.s, '=', value.n), 0};
    if (!equals.s)
        return;
    char *key MEM_AUTO = mem_dup(value.s, (size_t)(equals.s - value.s));
    char *text MEM_AUTO = os_release_get(value.s, value.n, key);
    if (!text || (r->distribution.len > 0 && strcmp(key, "PRETTY_NAME") != 0))
        return;
    buf_release(&r->distribution);
    transport_show(&r->distribution, text, strlen(text), 80);
}

static void read_loader(struct recon *r, struct span value)
{
    char *path MEM_AUTO = mem_dup(value.s, value.n);
    const char *libc = libc_of_loader(path);
    if (!libc)
        return;
    r->libc = libc;
    if (strstr(path, "64") || strstr(path, "s390x"))
        r->bits = 64;
    else if (r->bits == 0)
        r->bits = 32;
}

static void add_dir(struct argv *dirs, struct span value)
{
    char *dir MEM_AUTO = mem_dup(value.s, value.n);
    for (size_t i = 0; i < dirs->n; i++)
        if (strcmp(dirs->words[i], dir) == 0)
            return;
    if (dir[0] == '/' && transport_is_plain(dir) && dirs->n < RECON_DIRS_MAX)
        argv_add(dirs, dir);
}

static void read_fact(struct recon *r, struct span line, struct argv *noexec)
{
    struct span value = {line.s + 2, line.n - 2};
    switch (line.s[0]) {
    case 'u':
        copy(r->uid, sizeof r->uid, value);
        break;
    case 's':
        copy(r->os, sizeof r->os, value);
        break;
    case 'm':
        copy(r->machine, sizeof r->machine, value);
        break;
    case 'e':
        read_elf(r, value);
        break;
    case 'o':
        read_release(r, value);
        break;
    case 'l':
        read_loader(r, value);
        break;
    case 'w':
        add_dir(&r->dirs, value);
        break;
    case 'n':
        add_dir(noexec, value);
        break;
    case 'a':
        r->everywhere = true;
        break;
    case 'b':
        free(r->found);
        r->found = mem_dup(value.s, value.n);
        r->verdict = (struct span){0};
        break;
    default:
        break;
    }
}

bool recon_read(struct recon *r, struct span answer)
{
    struct argv noexec ARGV_AUTO = {0};
    struct span line;
    bool begun = false;
    *r = (struct recon){.libc = "none", .distribution = BUF_INIT};
    for (size_t at = 0; !r->whole && recon_line(answer, &at, &line);) {
        if (!begun)
            begun = span_is(line, SCRIPT_MARK);
        else if (span_is(line, SCRIPT_END))
            r->whole = true;
        else if (line.n > 0 && line.s[0] == '{' && r->found && json_check(line, NULL) == 0)
            r->verdict = line;
        else if (line.n >= 2 && line.s[1] == ' ')
            read_fact(r, line, &noexec);
    }
    for (size_t i = 0; i < noexec.n; i++)
        add_dir(&r->dirs, (struct span){noexec.words[i], strlen(noexec.words[i])});
    return begun;
}

void recon_release(struct recon *r)
{
    buf_release(&r->distribution);
    argv_release(&r->dirs);
    free(r->found);
    r->found = NULL;
}

const char *recon_arch(const struct recon *r, struct err *err)
{
    struct buf shown BUF_AUTO = BUF_INIT;
    if (r->no_uname && *r->loader_arch)
        return r->loader_arch;
    if (r->no_uname)
        return err_set(err, ERR_TOOL,
                       "the processor is not known: there is no uname, and the shell's own file can't "
                       "be read"),
               NULL;
    if (strcmp(r->os, "Linux") != 0) {
        transport_show(&shown, r->os, strlen(r->os), 40);
        return err_set(err, ERR_TOOL, "the system '%s' is not supported: Linux alone is", buf_str(&shown)),
               NULL;
    }
    for (const struct machine *m = machines; m->machine; m++)
        if (strcmp(m->machine, r->machine) == 0)
            return m->arch;
    for (const char *c = r->machine; *c; c++)
        buf_addf(&shown, *c >= ' ' && *c <= '~' ? "%c" : "\\x%02x", (unsigned char)*c);
    return err_set(err, ERR_TOOL, "the processor '%s' is not supported", buf_str(&shown)), NULL;
}
