/* Beside the rest of it, whose code is packed. */
#include "confine.h"

static const char *const names[] = {
    [CONFINE_READ] = "read",
    [CONFINE_WRITE] = "write",
    [CONFINE_EXECUTE] = "execute",
    [CONFINE_HIDE] = "hide",
    [CONFINE_TMP] = "private_tmp",
    [CONFINE_NETWORK] = "network",
    [CONFINE_SYSTEM_CALLS] = "system_calls",
    [CONFINE_PRIVILEGES] = "privileges",
    [CONFINE_SIGNALS] = "signals",
    [CONFINE_METADATA] = "metadata",
    [CONFINE_MEMORY] = "memory",
    [CONFINE_PROCESSES] = "processes",
    [CONFINE_CPUS] = "cpus",
    [CONFINE_CPU_SECONDS] = "cpu_seconds",
    [CONFINE_FILE_SIZE] = "file_size",
    [CONFINE_OPEN_FILES] = "open_files",
    [CONFINE_WALL_SECONDS] = "wall_seconds",
};

const char *confine_name(enum confine_what what)
{
    return names[what];
}
