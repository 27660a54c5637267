#include "relocate.h"

#include <stdlib.h>

#include "buf.h"
#include "inflate.h"

/* Where the program was started whole. */
__attribute__((weak)) void relocate_rest(void)
{
}

__attribute__((weak)) bool constants_packed(struct packed_constants *c)
{
    (void)c;
    return false;
}

__attribute__((weak)) void constants_unpacked(void)
{
}

void relocate_all(void)
{
    static bool done;
    struct packed_constants c;
    relocate_rest();
    if (done || !constants_packed(&c))
        return;
    done = true;
    struct buf place = {.data = c.place, .cap = c.n_place, .max = c.n_place};
    if (inflate(c.packed, c.n_packed, true, &place) < 0)
        abort(); /* the file is broken */
    constants_unpacked();
}
