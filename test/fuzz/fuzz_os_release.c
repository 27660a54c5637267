/* Any bytes as what a system's files are read from: os-release, programs, C libraries, names of loaders. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "osinfo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_release(const char *text, size_t n)
{
    static const char *const keys[] = {"ID", "VERSION_ID", "PRETTY_NAME", "NAME"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char *value = os_release_get(text, n, keys[i]);
        if (value && (*value == '\0' || strlen(value) > n || strchr(value, '\n')))
            abort();
        free(value);
    }
}

static void check_version(const char *version)
{
    if (!memchr(version, '\0', LIBC_VERSION_SIZE) || !strchr(version, '.'))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    char version[LIBC_VERSION_SIZE];
    size_t offset, length;
    check_release(text, size);
    if (elf_interpreter(data, size, &offset, &length) && (offset == 0 || length == 0))
        abort();
    if (glibc_version(text, size, version))
        check_version(version);
    if (musl_version(text, size, version))
        check_version(version);
    char *name = strndup(text, size);
    if (libc_version_in_name(name, version))
        check_version(version);
    libc_of_loader(name);
    free(name);
    return 0;
}
