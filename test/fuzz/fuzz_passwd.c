/* Any bytes as /etc/passwd and /etc/group: the first line is the name that is looked for. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "passwd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct passwd_field field, const char *text, size_t n)
{
    if (field.n > 0 && (field.s < text || field.s + field.n > text + n))
        abort();
}

static void check_user(const char *text, size_t n, const char *name)
{
    struct passwd_entry by_name, by_uid;
    if (!passwd_by_name(text, n, name, &by_name))
        return;
    if (by_name.name.n != strlen(name) || by_name.uid == (uid_t)-1 || by_name.gid == (gid_t)-1)
        abort();
    check_inside(by_name.home, text, n);
    check_inside(by_name.shell, text, n);
    if (!passwd_by_uid(text, n, by_name.uid, &by_uid) || by_uid.uid != by_name.uid)
        abort();
}

static void check_groups(const char *text, size_t n, struct passwd_field name)
{
    gid_t groups[4] = {0};
    size_t count = 1;
    group_of_member(text, n, name, groups, &count, 4);
    for (size_t i = 1; i < count; i++) {
        struct passwd_field found;
        if (groups[i] == 0 || !group_by_gid(text, n, groups[i], &found) || found.n == 0)
            abort();
        check_inside(found, text, n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *line = size > 0 ? memchr(text, '\n', size) : NULL;
    if (!line || memchr(text, '\0', (size_t)(line - text)))
        return 0;
    struct passwd_field field = {text, (size_t)(line - text)};
    char *name = strndup(text, field.n);
    size_t n = size - field.n - 1;
    check_user(line + 1, n, name);
    check_groups(line + 1, n, field);
    free(name);
    return 0;
}
