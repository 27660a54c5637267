#include "passwd.h"

#include <string.h>

/* Takes the text up to `stop` (or all of it) off the front; false when there was nothing left to take from.
 */
static bool cut(struct passwd_field *rest, char stop, struct passwd_field *taken)
{
    if (!rest->s)
        return false;
    const char *end = rest->n > 0 ? memchr(rest->s, stop, rest->n) : NULL;
    *taken = (struct passwd_field){rest->s, end ? (size_t)(end - rest->s) : rest->n};
    *rest = end ? (struct passwd_field){end + 1, rest->n - taken->n - 1} : (struct passwd_field){NULL, 0};
    return true;
}

static bool same(struct passwd_field field, struct passwd_field other)
{
    return field.n == other.n && (field.n == 0 || memcmp(field.s, other.s, field.n) == 0);
}

/* The next line that can be an entry. */
static bool next_line(struct passwd_field *rest, struct passwd_field *line)
{
    while (cut(rest, '\n', line)) {
        for (; line->n > 0 && (line->s[0] == ' ' || line->s[0] == '\t'); line->n--)
            line->s++;
        if (line->n > 0 && line->s[line->n - 1] == '\r')
            line->n--;
        if (line->n > 0 && !strchr("#+-", line->s[0]) && !memchr(line->s, '\0', line->n))
            return true;
    }
    return false;
}

bool passwd_number(const char *s, size_t n, unsigned *number)
{
    unsigned long long value = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return false;
        value = value * 10 + (unsigned)(s[i] - '0');
        if (value >= 0xFFFFFFFF)
            return false;
    }
    *number = (unsigned)value;
    return n > 0;
}

static bool cut_number(struct passwd_field *rest, unsigned *number)
{
    struct passwd_field field;
    return cut(rest, ':', &field) && passwd_number(field.s, field.n, number);
}

static bool next_user(struct passwd_field *rest, struct passwd_entry *user)
{
    struct passwd_field line, skipped;
    while (next_line(rest, &line)) {
        *user = (struct passwd_entry){.home = {"", 0}, .shell = {"", 0}};
        if (!cut(&line, ':', &user->name) || user->name.n == 0 || !cut(&line, ':', &skipped) ||
            !cut_number(&line, &user->uid) || !cut_number(&line, &user->gid))
            continue;
        if (cut(&line, ':', &skipped) && cut(&line, ':', &user->home))
            cut(&line, ':', &user->shell);
        return true;
    }
    return false;
}

/* The next group; members as the file has them, separated by commas. */
static bool next_group(struct passwd_field *rest, struct passwd_field *name, gid_t *gid,
                       struct passwd_field *members)
{
    struct passwd_field line, skipped;
    while (next_line(rest, &line)) {
        *members = (struct passwd_field){"", 0};
        if (!cut(&line, ':', name) || name->n == 0 || !cut(&line, ':', &skipped) || !cut_number(&line, gid))
            continue;
        cut(&line, ':', members);
        return true;
    }
    return false;
}

bool passwd_by_name(const char *text, size_t n, const char *name, struct passwd_entry *found)
{
    struct passwd_field rest = {text, n}, wanted = {name, strlen(name)};
    while (next_user(&rest, found))
        if (same(found->name, wanted))
            return true;
    return false;
}

bool passwd_by_uid(const char *text, size_t n, uid_t uid, struct passwd_entry *found)
{
    struct passwd_field rest = {text, n};
    while (next_user(&rest, found))
        if (found->uid == uid)
            return true;
    return false;
}

static bool has_member(struct passwd_field members, struct passwd_field name)
{
    struct passwd_field member;
    while (cut(&members, ',', &member))
        if (same(member, name))
            return true;
    return false;
}

static bool contains(const gid_t *groups, size_t count, gid_t gid)
{
    for (size_t i = 0; i < count; i++)
        if (groups[i] == gid)
            return true;
    return false;
}

void group_of_member(const char *text, size_t n, struct passwd_field name, gid_t *groups, size_t *count,
                     size_t max)
{
    struct passwd_field rest = {text, n}, group, members;
    gid_t gid;
    while (*count < max && next_group(&rest, &group, &gid, &members))
        if (has_member(members, name) && !contains(groups, *count, gid))
            groups[(*count)++] = gid;
}

bool group_by_gid(const char *text, size_t n, gid_t gid, struct passwd_field *name)
{
    struct passwd_field rest = {text, n}, members;
    gid_t found;
    while (next_group(&rest, name, &found, &members))
        if (found == gid)
            return true;
    return false;
}
