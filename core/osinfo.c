#include "osinfo.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "mem.h"

#if defined __x86_64__
#define ARCH "amd64"
#define MACHINE EM_X86_64
#elif defined __aarch64__
#define ARCH "arm64"
#define MACHINE EM_AARCH64
#elif defined __i386__
#define ARCH "i386"
#define MACHINE EM_386
#elif defined __arm__ && __ARM_ARCH >= 7
#define ARCH "armv7"
#define MACHINE EM_ARM
#elif defined __s390x__
#define ARCH "s390x"
#define MACHINE EM_S390
#elif defined __powerpc64__ && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCH "ppc64le"
#define MACHINE EM_PPC64
#elif defined __riscv && __riscv_xlen == 64
#define ARCH "riscv64"
#define MACHINE EM_RISCV
#else
#error "an architecture that no release has: give it a name"
#endif

const char *os_arch(void)
{
    return ARCH;
}

bool elf_is_ours(const void *head, size_t n)
{
    const unsigned char *ident = head;
    uint16_t machine;
    if (n < ELF_HEAD_SIZE || memcmp(ident, ELFMAG, SELFMAG) != 0)
        return false;
    memcpy(&machine, ident + EI_NIDENT + sizeof machine, sizeof machine);
    return ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
           ident[EI_DATA] == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB) &&
           machine == MACHINE;
}

/* ---- os-release ---- */

/* The value as a shell would read it: the file is made to be sourced. */
static char *unquote(const char *s, size_t n)
{
    char *out = mem_alloc(n + 1);
    size_t len = 0;
    char quote = '\0';
    for (size_t i = 0; i < n; i++) {
        if (s[i] == quote)
            quote = '\0';
        else if (!quote && (s[i] == '"' || s[i] == '\''))
            quote = s[i];
        else if (s[i] == '\\' && quote != '\'' && i + 1 < n && (!quote || strchr("\"$`\\", s[i + 1])))
            out[len++] = s[++i];
        else
            out[len++] = s[i];
    }
    out[len] = '\0';
    return out;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

char *os_release_get(const char *text, size_t n, const char *key)
{
    size_t key_len = strlen(key);
    const char *value = NULL;
    size_t value_len = 0;
    for (const char *at = text, *end = text + n, *next; at < end; at = next) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        next = stop ? stop + 1 : end;
        stop = stop ? stop : end;
        while (at < stop && is_space(*at))
            at++;
        while (stop > at && is_space(stop[-1]))
            stop--;
        if ((size_t)(stop - at) <= key_len || memcmp(at, key, key_len) != 0 || at[key_len] != '=' ||
            memchr(at, '\0', (size_t)(stop - at)))
            continue;
        value = at + key_len + 1;
        value_len = (size_t)(stop - value);
    }
    if (!value)
        return NULL;
    char *plain = unquote(value, value_len);
    if (*plain == '\0') {
        mem_free_auto(&plain);
        return NULL;
    }
    return plain;
}

/* ---- programs ---- */

/* Numbers of an ELF file of either word size and byte order. */
struct elf_view {
    const unsigned char *bytes;
    size_t n;
    bool wide;
    bool big_endian;
};

/* `size` bytes at an offset; what lies outside reads as 0, which no field that is looked at may be. */
static uint64_t number(const struct elf_view *elf, uint64_t offset, unsigned size)
{
    uint64_t value = 0;
    if (offset > elf->n || size > elf->n - offset)
        return 0;
    for (unsigned i = 0; i < size; i++)
        value = value << 8 | elf->bytes[offset + (elf->big_endian ? i : size - 1 - i)];
    return value;
}

#define FIELD(elf, base, type, member)                                                                       \
    ((elf)->wide ? number(elf, (base) + offsetof(Elf64_##type, member), sizeof((Elf64_##type *)0)->member)   \
                 : number(elf, (base) + offsetof(Elf32_##type, member), sizeof((Elf32_##type *)0)->member))

bool elf_interpreter(const void *head, size_t n, size_t *offset, size_t *size)
{
    const unsigned char *bytes = head;
    if (n < EI_NIDENT || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return false;
    struct elf_view elf = {bytes, n, bytes[EI_CLASS] == ELFCLASS64, bytes[EI_DATA] == ELFDATA2MSB};
    uint64_t table = FIELD(&elf, 0, Ehdr, e_phoff);
    uint64_t step = FIELD(&elf, 0, Ehdr, e_phentsize);
    uint64_t count = FIELD(&elf, 0, Ehdr, e_phnum);
    for (uint64_t i = 0; table < n && i < count; i++) {
        uint64_t entry = table + i * step;
        if (FIELD(&elf, entry, Phdr, p_type) != PT_INTERP)
            continue;
        uint64_t start = FIELD(&elf, entry, Phdr, p_offset), length = FIELD(&elf, entry, Phdr, p_filesz);
        *offset = (size_t)start;
        *size = (size_t)length;
        return start > 0 && start <= PTRDIFF_MAX && length > 0 && length <= PTRDIFF_MAX;
    }
    return false;
}

/* ---- C libraries ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

const char *libc_of_loader(const char *path)
{
    const char *name = base_name(path);
    if (starts_with(name, "ld-musl-"))
        return "musl";
    if (starts_with(name, "ld-uClibc") || starts_with(name, "ld64-uClibc"))
        return "uclibc";
    if (strcmp(name, "linker") == 0 || strcmp(name, "linker64") == 0)
        return "bionic";
    if (starts_with(name, "ld-linux") || starts_with(name, "ld64.so.") || strcmp(name, "ld.so.1") == 0 ||
        (starts_with(name, "ld-") && is_digit(name[3])))
        return "glibc";
    return NULL;
}

/* Length of "1.2" or "1.2.3" and so on at the start of s. */
static size_t version_length(const char *s, size_t n)
{
    size_t len = 0;
    while (len < n && (is_digit(s[len]) || (s[len] == '.' && len > 0 && len + 1 < n && is_digit(s[len + 1]))))
        len++;
    return len;
}

static bool take_version(const char *s, size_t len, char version[LIBC_VERSION_SIZE])
{
    if (len == 0 || len >= LIBC_VERSION_SIZE || !memchr(s, '.', len))
        return false;
    memcpy(version, s, len);
    version[len] = '\0';
    return true;
}

bool libc_version_in_name(const char *path, char version[LIBC_VERSION_SIZE])
{
    const char *dash = strrchr(base_name(path), '-');
    if (!dash)
        return false;
    size_t len = version_length(dash + 1, strlen(dash + 1));
    return starts_with(dash + 1 + len, ".so") && take_version(dash + 1, len, version);
}

/* "… stable release version 2.36.", in the library as in its loader. */
bool glibc_version(const char *bytes, size_t n, char version[LIBC_VERSION_SIZE])
{
    static const char mark[] = " release version ";
    const char *at, *end = bytes + n;
    while (bytes < end && (at = memmem(bytes, (size_t)(end - bytes), mark, sizeof mark - 1))) {
        bytes = at + sizeof mark - 1;
        size_t len = version_length(bytes, (size_t)(end - bytes));
        if (bytes + len + 1 < end && take_version(bytes, len, version))
            return true;
    }
    return false;
}

/* musl has its version as a string of its own, "1.2.3" or "1.2.3-git-5-gabcdef", and none that looks like it:
 * addresses have four numbers. */
bool musl_version(const char *bytes, size_t n, char version[LIBC_VERSION_SIZE])
{
    for (size_t i = 0; i + 7 <= n; i++) {
        if (bytes[i] != '\0' || !is_digit(bytes[i + 1]) || bytes[i + 2] != '.')
            continue;
        const char *s = bytes + i + 1;
        size_t left = n - i - 1, len = version_length(s, left), dots = 0;
        for (size_t k = 0; k < len; k++)
            dots += s[k] == '.';
        size_t whole = strnlen(s, left);
        if (dots == 2 && whole < left && (s[len] == '\0' || s[len] == '-') && take_version(s, whole, version))
            return true;
    }
    return false;
}
