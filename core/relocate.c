#include "relocate.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "buf.h"
#include "inflate.h"
#include "io.h"

/* Where the program was started whole. */
__attribute__((weak)) void relocate_rest(void)
{
}

__attribute__((weak)) bool constants_packed(struct packed *p)
{
    (void)p;
    return false;
}

__attribute__((weak)) bool code_packed(enum code_part which, struct packed *p)
{
    (void)which, (void)p;
    return false;
}

__attribute__((weak)) void constants_unpacked(void)
{
}

static void unpack(const struct packed *p)
{
    struct buf place = {.data = p->place, .cap = p->n_place, .max = p->n_place};
    if (inflate(p->data, p->n_data, true, &place) < 0)
        abort(); /* the file is broken */
}

void relocate_all(void)
{
    static bool done;
    struct packed p;
    relocate_rest();
    if (done || !constants_packed(&p))
        return;
    done = true;
    unpack(&p);
    constants_unpacked();
}

/* The distances of calls and jumps (E8, E9 of amd64) are packed as places (scripts/link-packed). */
static void put_distances(const struct packed *p)
{
    uint32_t word;
    for (size_t i = 0; i + 1 + sizeof word < p->n_place;) {
        char *at = p->place + i;
        if ((*at & 0xfe) != 0xe8) {
            i++;
            continue;
        }
        memcpy(&word, at + 1, sizeof word);
        word -= (uint32_t)i;
        memcpy(at + 1, &word, sizeof word);
        i += 1 + sizeof word;
    }
}

/* Where memory that was written to may not become code (systemd's MemoryDenyWriteExecute, PR_SET_MDWE, PaX),
 * a file that has no name may be. */
static int map_as_code(const struct packed *p)
{
    int fd FD_AUTO = memfd_create("code", MFD_CLOEXEC);
    if (fd < 0 || io_write_all(fd, p->place, p->n_place) < 0)
        return -1;
    void *at = mmap(p->place, p->n_place, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
    return at == p->place ? 0 : -1;
}

int code_unpack(enum code_part which, struct err *err)
{
    static bool done[CODE_PARTS];
    struct packed p;
    if (done[which] || !code_packed(which, &p))
        return 0;
    unpack(&p);
    put_distances(&p);
    if (mprotect(p.place, p.n_place, PROT_READ | PROT_EXEC) < 0 && map_as_code(&p) < 0)
        return err_sys(err, ERR_TOOL, errno, "no program may add code to its memory here, which this needs");
    done[which] = true;
    return 0;
}
