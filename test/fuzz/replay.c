/*
 * Runs a fuzzer's target once on each file of a folder, without libFuzzer: the corpus as a regression test.
 *
 * usage: PROGRAM FOLDER
 *
 * Each input is in a block of exactly its size: a read beyond its end is one that the address sanitizer sees.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

#pragma weak __sanitizer_set_death_callback

static const char *current = "the empty input";

/* An assertion of the target is to be reported as a fault of the sanitizers is. */
const char *__asan_default_options(void)
{
    return "handle_abort=1";
}

static void name_input(void)
{
    fprintf(stderr, "input: %s\n", current);
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void replay(int folder, const char *name)
{
    struct stat st;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        fail(name);

    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size);
    if (!data || read(fd, data, size) != st.st_size)
        fail(name);
    close(fd);

    current = name;
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    DIR *dir = opendir(argv[1]);
    if (!dir)
        fail(argv[1]);

    if (&__sanitizer_set_death_callback) /* not where coverage is measured */
        __sanitizer_set_death_callback(name_input);
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    unsigned count = 0;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        replay(dirfd(dir), e->d_name);
        count++;
    }
    closedir(dir);
    printf("# %s: %u inputs\n", argv[1], count);
    return count > 0 ? 0 : 1; /* an empty corpus tests nothing */
}
