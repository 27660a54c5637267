#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include <sys/utsname.h>

#include <cmocka.h>

#include "osinfo.h"

/* ---- os-release ---- */

static const char release[] = "# comment=1\r\n"
                              "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\r\n"
                              "VERSION_ID=\"11\"\n"
                              "  VERSION_ID='12'  \n"
                              "ID=debian\r\n"
                              "ID_LIKE=other\n"
                              "EMPTY=\"\"\n"
                              "ESCAPED=\"a\\\"b\\$c\\\\d\\e\"\n"
                              "PLAIN=a\\ b\n"
                              "SINGLE='it\\n'\n"
                              "OPEN=\"never closed\n"
                              "MIXED=a\"b c\"'d'\n"
                              "no equals sign\n"
                              "LAST=end";

static void assert_value(const char *key, const char *expected)
{
    char *value = os_release_get(release, sizeof release - 1, key);
    if (!expected) {
        assert_null(value);
        return;
    }
    assert_non_null(value);
    assert_string_equal(value, expected);
    free(value);
}

static void values_are_read_as_a_shell_would(void **state)
{
    (void)state;
    assert_value("PRETTY_NAME", "Debian GNU/Linux 12 (bookworm)");
    assert_value("VERSION_ID", "12");
    assert_value("ID", "debian");
    assert_value("ESCAPED", "a\"b$c\\d\\e");
    assert_value("PLAIN", "a b");
    assert_value("SINGLE", "it\\n");
    assert_value("OPEN", "never closed");
    assert_value("MIXED", "ab cd");
    assert_value("LAST", "end");
}

static void what_is_not_there_is_null(void **state)
{
    (void)state;
    static const char *const keys[] = {"EMPTY", "comment", "LIKE", "I", "no", "no equals sign", "LAS"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_value(keys[i], NULL);
    assert_null(os_release_get("", 0, "ID"));
    assert_null(os_release_get("ID", 2, "ID"));
    assert_null(os_release_get("ID=", 3, "ID"));
    assert_null(os_release_get("ID=a\0b\n", 7, "ID"));
}

/* What there is no byte behind is read to there and no further: a sanitizer sees it. */
static void texts_end_where_they_end(void **state)
{
    (void)state;
    static const char *const texts[] = {"  ",   "ID=a  ", "ID=\"a",  "ID='", "ID=a\\",
                                        "  ID", "\n\n",   "ID=\"\\", "\t\r", "ID=a\n  "};
    static const char *const values[] = {NULL, "a", "a", NULL, "a\\", NULL, NULL, "\\", NULL, "a"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t n = strlen(texts[i]);
        char *exact = malloc(n), *value;
        memcpy(exact, texts[i], n);
        value = os_release_get(exact, n, "ID");
        if (values[i] ? !value || strcmp(value, values[i]) != 0 : value != NULL)
            fail_msg("'%s' gives '%s'", texts[i], value ? value : "(none)");
        free(value);
        free(exact);
    }
}

/* ---- programs ---- */

static void put(unsigned char *at, uint64_t value, unsigned size, int big_endian)
{
    for (unsigned i = 0; i < size; i++)
        at[big_endian ? size - 1 - i : i] = (unsigned char)(value >> 8 * i);
}

/* A header and two entries, the second of them the loader's. */
static void make_elf(unsigned char image[256], int wide, int big_endian)
{
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F'};
    memset(image, 0, 256);
    memcpy(image, magic, sizeof magic);
    image[EI_CLASS] = wide ? ELFCLASS64 : ELFCLASS32;
    image[EI_DATA] = big_endian ? ELFDATA2MSB : ELFDATA2LSB;
    unsigned table = wide ? 64 : 52, step = wide ? 56 : 32;
    put(image + (wide ? 32 : 28), table, wide ? 8 : 4, big_endian);
    put(image + (wide ? 54 : 42), step, 2, big_endian);
    put(image + (wide ? 56 : 44), 2, 2, big_endian);
    unsigned char *entry = image + table;
    put(entry, PT_LOAD, 4, big_endian);
    put(entry + step, PT_INTERP, 4, big_endian);
    put(entry + step + (wide ? 8 : 4), 0x238, wide ? 8 : 4, big_endian);
    put(entry + step + (wide ? 32 : 16), 28, wide ? 8 : 4, big_endian);
}

static void the_loader_is_found_in_every_kind_of_file(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        unsigned char image[256];
        size_t offset = 0, size = 0;
        make_elf(image, kind & 1, kind & 2);
        assert_true(elf_interpreter(image, sizeof image, &offset, &size));
        assert_int_equal(offset, 0x238);
        assert_int_equal(size, 28);
    }
}

static void a_cut_file_has_no_loader(void **state)
{
    (void)state;
    unsigned char image[256];
    size_t offset, size;
    make_elf(image, 1, 0);
    for (size_t n = 0; n < 64 + 56 + 8; n++) {
        unsigned char *exact = malloc(n + 1); /* so that a sanitizer sees reads behind the end */
        memcpy(exact + 1, image, n);
        assert_false(elf_interpreter(exact + 1, n, &offset, &size));
        free(exact);
    }
    assert_false(elf_interpreter("#!/bin/sh\nexit 0 and more", 25, &offset, &size));
    memset(image + 64 + 56 + 8, 0xff, 8); /* an offset that no file has */
    assert_false(elf_interpreter(image, sizeof image, &offset, &size));
    memset(image + 32, 0xff, 8); /* a table that is not there */
    assert_false(elf_interpreter(image, sizeof image, &offset, &size));
}

/* ---- C libraries ---- */

static void loaders_are_known_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *kind;
    } cases[] = {
        {"/lib64/ld-linux-x86-64.so.2", "glibc"},
        {"/lib/ld-linux-aarch64.so.1", "glibc"},
        {"/lib/ld-linux.so.2", "glibc"},
        {"/lib/ld64.so.2", "glibc"},
        {"/lib/ld.so.1", "glibc"},
        {"/lib/x86_64-linux-gnu/ld-2.31.so", "glibc"},
        {"/lib/ld-musl-x86_64.so.1", "musl"},
        {"/lib/ld-uClibc.so.0", "uclibc"},
        {"/lib/ld64-uClibc.so.1", "uclibc"},
        {"/system/bin/linker64", "bionic"},
        {"/system/bin/linker", "bionic"},
        {"linker_of_mine", NULL},
        {"/lib/libc.so.6", NULL},
        {"", NULL},
        {"/lib/ld-linux-x86-64.so.2/", NULL},
        {"ld-", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *kind = libc_of_loader(cases[i].path);
        if (cases[i].kind)
            assert_string_equal(kind ? kind : "none", cases[i].kind);
        else
            assert_null(kind);
    }
}

static void versions_in_names(void **state)
{
    (void)state;
    char version[LIBC_VERSION_SIZE];
    assert_true(libc_version_in_name("/lib/x86_64-linux-gnu/ld-2.31.so", version));
    assert_string_equal(version, "2.31");
    assert_true(libc_version_in_name("ld64-uClibc-0.9.33.2.so", version));
    assert_string_equal(version, "0.9.33.2");
    static const char *const none[] = {"ld-linux-x86-64.so.2",
                                       "ld-musl-x86_64.so.1",
                                       "libc.so.6",
                                       "",
                                       "-",
                                       "a-2.so",
                                       "a-.so",
                                       "a-2.31",
                                       "a-2.31.x.so",
                                       "/lib-2.31.so/x",
                                       "a-1.1111111111111111111111111111111111.so"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(libc_version_in_name(none[i], version));
}

static void versions_in_glibc(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *version; /* NULL: none */
    } cases[] = {
        {"..GNU C Library (Debian GLIBC 2.36-9+deb12u14) stable release version 2.36.\nCopyright", "2.36"},
        {"GNU C Library (GNU libc) stable release version 2.17, by Roland McGrath et al.", "2.17"},
        {"GNU C Library (GNU libc) development release version 2.39.9000.\n", "2.39.9000"},
        {"GNU C Library stable release version 2.3.\n", "2.3"},
        {"ld.so (Debian GLIBC 2.36-9) stable release version 2.36.\n", "2.36"},
        {"one release version of x, stable release version 2.35.\n", "2.35"},
        {"GNU C Library", NULL},
        {"GNU C Library release version ", NULL},
        {"GNU C Library release version x", NULL},
        {"stable release version 2.3.", NULL}, /* its end may be in the next piece */
        {"stable release version 2. ", NULL},
        {"", NULL},
    };
    char version[LIBC_VERSION_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool found = glibc_version(cases[i].text, strlen(cases[i].text), version);
        assert_int_equal(found, cases[i].version != NULL);
        if (found)
            assert_string_equal(version, cases[i].version);
    }
}

static void versions_in_musl(void **state)
{
    (void)state;
    char version[LIBC_VERSION_SIZE];
    static const char plain[] = "x\0127.0.0.1\0/1.2.9\01.2.\0\0001.2.3\0more";
    assert_true(musl_version(plain, sizeof plain, version));
    assert_string_equal(version, "1.2.3");
    static const char git[] = "\0001.2.5-git-4-g0a1b2c3\0";
    assert_true(musl_version(git, sizeof git, version));
    assert_string_equal(version, "1.2.5-git-4-g0a1b2c3");
    static const char cut[] = "\0001.2.3"; /* its end may be in the next piece */
    assert_false(musl_version(cut, sizeof cut - 1, version));
    assert_true(musl_version(cut, sizeof cut, version)); /* just so long */
    static const char none[] = "1.2.3\0\00010.2.3\0\0001.2\0\0001.2.3.4\0\0001.2.3 x\0";
    assert_false(musl_version(none, sizeof none, version));
    assert_false(musl_version("", 0, version));
}

static void this_processor_has_its_name(void **state)
{
    (void)state;
    struct utsname machine;
    assert_int_equal(uname(&machine), 0);
    if (strcmp(machine.machine, "x86_64") == 0)
        assert_string_equal(os_arch(), "amd64");
    if (strcmp(machine.machine, "aarch64") == 0)
        assert_string_equal(os_arch(), "arm64");
}

static void programs_of_this_processor(void **state)
{
    (void)state;
    char head[ELF_HEAD_SIZE], changed[ELF_HEAD_SIZE];
    int fd = open("/proc/self/exe", O_RDONLY);
    assert_int_equal(read(fd, head, sizeof head), sizeof head);
    close(fd);
    assert_true(elf_is_ours(head, sizeof head));
    assert_false(elf_is_ours(head, sizeof head - 1));
    static const size_t tells[] = {0, 3, 4, 5, 18, 19}; /* magic, width, byte order, processor */
    for (size_t i = 0; i < sizeof tells / sizeof *tells; i++) {
        memcpy(changed, head, sizeof head);
        changed[tells[i]] ^= 3;
        assert_false(elf_is_ours(changed, sizeof changed));
    }
    assert_false(elf_is_ours("#!/bin/sh\nexec something\n", 24));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_of_this_processor),
        cmocka_unit_test(values_are_read_as_a_shell_would),
        cmocka_unit_test(what_is_not_there_is_null),
        cmocka_unit_test(texts_end_where_they_end),
        cmocka_unit_test(the_loader_is_found_in_every_kind_of_file),
        cmocka_unit_test(a_cut_file_has_no_loader),
        cmocka_unit_test(loaders_are_known_by_name),
        cmocka_unit_test(versions_in_names),
        cmocka_unit_test(versions_in_glibc),
        cmocka_unit_test(versions_in_musl),
        cmocka_unit_test(this_processor_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
