#include "user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "mem.h"
#include "passwd.h"

/* Far beyond any real file; what stands behind it does not exist for us. */
#define FILE_MAX (16u << 20)

/* A file that can't be read is one without entries: containers often have neither. */
static void read_text(const char *path, struct buf *text)
{
    buf_init(text, FILE_MAX);
    io_read_file(AT_FDCWD, path, text);
}

static void fill_groups(struct user *u)
{
    gid_t groups[USER_GROUPS_MAX];
    groups[0] = u->gid;
    u->n_groups = 1;
    if (u->name) {
        struct buf text BUF_AUTO;
        read_text("/etc/group", &text);
        struct passwd_field name = {u->name, strlen(u->name)};
        group_of_member(buf_str(&text), text.len, name, groups, &u->n_groups, USER_GROUPS_MAX);
    }
    u->groups = mem_alloc(u->n_groups * sizeof *groups);
    memcpy(u->groups, groups, u->n_groups * sizeof *groups);
}

static void fill_known(struct user *u, const struct passwd_entry *entry)
{
    *u = (struct user){
        .uid = entry->uid,
        .gid = entry->gid,
        .name = mem_dup(entry->name.s, entry->name.n),
        .home = entry->home.n > 0 ? mem_dup(entry->home.s, entry->home.n) : mem_strdup("/"),
        .shell = mem_dup(entry->shell.s, entry->shell.n),
    };
    fill_groups(u);
}

static void fill_unknown(struct user *u, unsigned number)
{
    *u = (struct user){.uid = number, .gid = number, .home = mem_strdup("/"), .shell = mem_strdup("")};
    fill_groups(u);
}

int user_lookup(struct user *u, const char *name, struct err *err)
{
    struct buf text BUF_AUTO;
    read_text("/etc/passwd", &text);
    struct passwd_entry entry;
    unsigned number = 0;
    bool known = passwd_by_name(buf_str(&text), text.len, name, &entry);
    if (!known && !passwd_number(name, strlen(name), &number))
        return err_set(err, ERR_TOOL, "no such user: '%s' (neither a name in /etc/passwd nor a uid)", name);
    if (known || passwd_by_uid(buf_str(&text), text.len, number, &entry))
        fill_known(u, &entry);
    else
        fill_unknown(u, number);
    return 0;
}

void user_of_uid(struct user *u, uid_t uid)
{
    struct buf text BUF_AUTO;
    read_text("/etc/passwd", &text);
    struct passwd_entry entry;
    if (passwd_by_uid(buf_str(&text), text.len, uid, &entry))
        fill_known(u, &entry);
    else
        fill_unknown(u, uid);
}

void user_of_numbers(struct user *u, uid_t uid, const gid_t *groups, size_t n, const char *home)
{
    user_of_uid(u, uid);
    free(u->groups);
    u->gid = groups[0];
    u->groups = mem_alloc(n * sizeof *groups);
    memcpy(u->groups, groups, n * sizeof *groups);
    u->n_groups = n;
    u->exact = true;
    if (home) {
        free(u->home);
        u->home = mem_strdup(home);
    }
}

void user_release(struct user *u)
{
    free(u->name);
    free(u->home);
    free(u->shell);
    free(u->groups);
    *u = (struct user){0};
}

/* For messages: the name, or the number in `number`. */
static const char *label(const struct user *u, char number[16])
{
    snprintf(number, 16, "%u", (unsigned)u->uid);
    return u->name ? u->name : number;
}

/* errnum 0: the step itself says what is wrong. */
static int refuse(const struct user *u, const char *step, int errnum, struct err *err)
{
    char number[16];
    const char *name = label(u, number);
    if (errnum == 0)
        return err_set(err, ERR_TOOL, "can't become user '%s': %s", name, step);
    if (errnum == EPERM && geteuid() != 0)
        return err_set(err, ERR_TOOL, "can't become user '%s': this process is not root, it runs as uid %u",
                       name, (unsigned)geteuid());
    return err_sys(err, ERR_TOOL, errnum, "can't become user '%s': %s", name, step);
}

static bool has_group(const struct user *u, gid_t gid)
{
    for (size_t i = 0; i < u->n_groups; i++)
        if (u->groups[i] == gid)
            return true;
    return false;
}

/* What the calls left behind is read again rather than believed, and the way back must be shut: a process
 * with CAP_SETUID that was not root keeps it. */
static const char *unproven(const struct user *u)
{
    uid_t uid[3];
    gid_t gid[3];
    gid_t groups[USER_GROUPS_MAX];
    if (getresuid(&uid[0], &uid[1], &uid[2]) < 0 || uid[0] != u->uid || uid[1] != u->uid || uid[2] != u->uid)
        return "the uid did not change";
    if (getresgid(&gid[0], &gid[1], &gid[2]) < 0 || gid[0] != u->gid || gid[1] != u->gid || gid[2] != u->gid)
        return "the gid did not change";
    int n = getgroups(USER_GROUPS_MAX, groups);
    while (n > 0 && has_group(u, groups[n - 1]))
        n--;
    if (n != 0)
        return "the groups did not change";
    if (u->uid != 0 && setresuid((uid_t)-1, 0, (uid_t)-1) == 0)
        return "the way back to root stayed open";
    return NULL;
}

/* Those of the process are the user's, and the other way round. */
static bool has_its_groups(const struct user *u)
{
    gid_t groups[USER_GROUPS_MAX + 1];
    int n = getgroups(USER_GROUPS_MAX, groups);
    if (n < 0)
        return false;
    groups[n++] = getegid();
    const struct user process = {.groups = groups, .n_groups = (size_t)n};
    bool same = true;
    for (int i = 0; i < n && same; i++)
        same = has_group(u, groups[i]);
    for (size_t i = 0; i < u->n_groups && same; i++)
        same = has_group(&process, u->groups[i]);
    return same;
}

bool user_is_self(const struct user *u)
{
    if (getuid() != u->uid || geteuid() != u->uid)
        return false;
    bool same_gid = getgid() == u->gid && getegid() == u->gid;
    return u->exact ? same_gid && has_its_groups(u) : same_gid || u->uid != 0;
}

/* What root has in the kernel's session keyring (which goes to whatever it starts) would be the user's to
 * read: he gets an empty one. Where there is no such call (a filter of the container's refuses it) no key is
 * read either. */
static int leave_keyring(void)
{
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0 || errno == ENOSYS || errno == EPERM ||
        errno == EACCES) /* gVisor of 2022 */
        return 0;
    return -1;
}

int user_become(const struct user *u, struct err *err)
{
    uid_t real, effective, saved;
    if (user_is_self(u) && getresuid(&real, &effective, &saved) == 0 && saved == u->uid)
        return 0; /* nothing to give up, and without capabilities not even root may call setgroups */
    if (leave_keyring() < 0)
        return refuse(u, "keyctl", errno, err);
    if (setgroups(u->n_groups, u->groups) < 0)
        return refuse(u, "setgroups", errno, err);
    if (setresgid(u->gid, u->gid, u->gid) < 0)
        return refuse(u, "setresgid", errno, err);
    if (setresuid(u->uid, u->uid, u->uid) < 0)
        return refuse(u, "setresuid", errno, err);
    const char *why = unproven(u);
    return why ? refuse(u, why, 0, err) : 0;
}

char *user_label(uid_t uid)
{
    struct user u USER_AUTO;
    user_of_uid(&u, uid);
    return u.name ? mem_strdup(u.name) : mem_printf("%ld", (long)uid);
}

char *user_group_name(gid_t gid)
{
    struct buf text BUF_AUTO;
    read_text("/etc/group", &text);
    struct passwd_field name;
    return group_by_gid(buf_str(&text), text.len, gid, &name) ? mem_dup(name.s, name.n) : NULL;
}

int user_wanted(struct user *u, bool *other, struct err *err)
{
    int result = 0;
    char number[16];
    *other = !user_is_self(u);
    if (*other && geteuid() == 0)
        return 0;
    if (*other)
        result = err_set(err, ERR_TOOL, "cannot run a program as '%s'%s: the server does not run as root",
                         label(u, number), u->uid == geteuid() ? " with other groups than its own" : "");
    *other = false;
    user_release(u);
    return result;
}
