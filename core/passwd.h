/* The text of /etc/passwd and /etc/group: nothing but parsing, so that any bytes can be tried on it.
 *
 * Lines have any length and may end in CR. What is no entry is passed over: comments, NIS's "+" and "-"
 * lines, lines with a NUL, with too few fields or with a number that is none (decimal, no sign, below 2^32 -
 * 1, which means "none" to the kernel). Of several entries the first counts. Results point into the text. */
#ifndef CORE_PASSWD_H
#define CORE_PASSWD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct passwd_field {
    const char *s; /* no NUL behind */
    size_t n;
};

struct passwd_entry {
    struct passwd_field name;
    uid_t uid;
    gid_t gid;
    struct passwd_field home; /* may be empty, as may shell: old files leave the last fields out */
    struct passwd_field shell;
};

/* A decimal uid or gid; false when the n bytes are anything else. */
bool passwd_number(const char *s, size_t n, unsigned *number);

bool passwd_by_name(const char *text, size_t n, const char *name, struct passwd_entry *found);
bool passwd_by_uid(const char *text, size_t n, uid_t uid, struct passwd_entry *found);

/* Appends the groups that list the name as a member and are not there yet: *count grows, up to max. */
void group_of_member(const char *text, size_t n, struct passwd_field name, gid_t *groups, size_t *count,
                     size_t max);

bool group_by_gid(const char *text, size_t n, gid_t gid, struct passwd_field *name);

#endif
