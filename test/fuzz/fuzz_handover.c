/* Any bytes as the record of a state that another build hands over. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/exec_remote/exec_remote_keeper.h"
#include "tools/bash_session/bash_session_keeper.h"
#include "handover.h"
#include "commands/server/moving.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct handover h;
    struct err err;
    h = (struct handover){.map = NULL};
    if (handover_parse(&h, (const char *)data, size, &err) < 0)
        return 0;
    for (size_t i = 0; i < h.n_parts; i++) {
        const struct handover_part *p = &h.parts[i];
        if (p->data < (const char *)data || p->n > size ||
            (size_t)(p->data - (const char *)data) > size - p->n)
            abort();
    }
    job_moving.take(NULL, &h, &err);
    session_moving.take(NULL, &h, &err);
    return 0;
}
