#include "probe_controller.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "ipc.h"
#include "mem.h"
#include "pty.h"
#include "self.h"

/* ---- this binary ---- */

static void collect_self(struct probe_self *self)
{
    *self = (struct probe_self){.path = self_path(), .size = PROBE_UNKNOWN};
    struct stat st;
    int fd FD_AUTO = self_open();
    /* It may be executable without being readable. (The link is looked at last: an emulator has it lead to
     * itself.) */
    if ((fd >= 0 && fstat(fd, &st) == 0) || stat("/proc/self/exe", &st) == 0 ||
        (self->path && stat(self->path, &st) == 0))
        self->size = st.st_size;
    if (fd < 0 || sha256_file(fd, self->sha256) < 0)
        self->sha256[0] = '\0';
}

/* ---- places ---- */

static void add_place(struct probe *p, const char *path)
{
    for (size_t i = 0; i < p->n_places; i++)
        if (strcmp(p->places[i].path, path) == 0)
            return;
    if (p->n_places < PROBE_PLACES_MAX)
        p->places[p->n_places++] = (struct probe_place){mem_strdup(path), probe_try_place(path)};
}

/* In the order in which somebody who brings a program along would try them: what outlives a restart first,
 * then what may be memory, then what is the user's. */
static void collect_places(struct probe *p)
{
    static const char *const usual[] = {"/var/tmp", "/opt", "/usr/local/bin", "/run", "/tmp", "/dev/shm"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        add_place(p, usual[i]);
    if (p->identity.home[0] == '/')
        add_place(p, p->identity.home);
    char cwd[PATH_MAX];
    if (getcwd(cwd, sizeof cwd) && cwd[0] == '/')
        add_place(p, cwd);
}

/* ---- services ---- */

static void probe_pty(struct probe *p)
{
    struct pty pty;
    struct err err;
    p->pty = pty_open(&pty, 24, 80, NULL, &err) == 0;
    if (p->pty)
        pty_close(&pty);
    else
        p->pty_refusal = mem_strdup(err.msg);
}

static void probe_server(struct probe_server *server)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    uid_t uid;
    int fd FD_AUTO = ipc_find(&place, IPC_SERVER);
    server->running = fd >= 0 && ipc_peer(fd, &server->pid, &uid) == 0;
    if (server->running)
        server->directory = mem_strdup(place.path);
}

void probe_collect(struct probe *p)
{
    *p = (struct probe){0};
    int root FD_AUTO = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    collect_self(&p->self);
    probe_platform(&p->platform, root);
    probe_identity(&p->identity);
    collect_places(p);
    probe_limits(&p->limits, root);
    probe_pty(p);
    probe_server(&p->server);
}

void probe_release(struct probe *p)
{
    free(p->self.path);
    probe_platform_release(&p->platform);
    free(p->identity.groups);
    free(p->identity.user);
    free(p->identity.home);
    for (size_t i = 0; i < p->n_places; i++)
        free(p->places[i].path);
    free(p->pty_refusal);
    free(p->server.directory);
    *p = (struct probe){0};
}
