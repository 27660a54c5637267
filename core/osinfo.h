/* What the bytes of certain files say about a system: its release, its programs' loader, its C library.
 *
 * Nothing is executed and nothing is opened here: the functions take text that somebody else has read, whole
 * or the start of it, and may be given any bytes. */
#ifndef CORE_OSINFO_H
#define CORE_OSINFO_H

#include <stdbool.h>
#include <stddef.h>

/* The processor this binary is made for, as a release names it: amd64, arm64, armv7, i386, ppc64le, riscv64,
 * s390x. */
const char *os_arch(void);

/* Whether a program, by the start of its file, is one for the same processor, width and byte order as this
 * one: then system call numbers and structures are the same as here. */
#define ELF_HEAD_SIZE 20
bool elf_is_ours(const void *head, size_t n);

/* Value of a key in the text of os-release(5), with quotes, escapes and CR removed; the last of several
 * counts. NULL when it is absent or empty. free() it. */
char *os_release_get(const char *text, size_t n, const char *key);

/* Where the path of a dynamic program's loader stands in its file, from the start of the file. False when it
 * is no ELF program, or one without a loader. */
bool elf_interpreter(const void *head, size_t n, size_t *offset, size_t *size);

/* Whose loader has that name (a path is fine): "glibc", "musl", "uclibc", "bionic"; NULL: nobody's. */
const char *libc_of_loader(const char *path);

#define LIBC_VERSION_SIZE 32 /* longest version with its NUL */

/* The version in a name such as ld-2.31.so or libuClibc-1.0.42.so. */
bool libc_version_in_name(const char *path, char version[LIBC_VERSION_SIZE]);
/* The version in a piece of the loader's or the library's file. Where a file is read in pieces, each should
 * begin with the last LIBC_TEXT_MAX bytes of the one before. */
#define LIBC_TEXT_MAX 64
bool glibc_version(const char *bytes, size_t n, char version[LIBC_VERSION_SIZE]);
bool musl_version(const char *bytes, size_t n, char version[LIBC_VERSION_SIZE]);

#endif
