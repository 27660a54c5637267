#include "instance.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "buf.h"
#include "io.h"
#include "proc.h"

void instance_text(char text[INSTANCE_MAX])
{
    struct buf boot BUF_AUTO = BUF_INIT;
    struct proc first = {0};
    struct stat root = {0};
    size_t n = 0;
    if (stat("/", &root) < 0 || proc_read(1, &first) < 0 ||
        io_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &boot) < 0)
        buf_truncate(&boot, 0);
    while (n < boot.len && n < 36 && (isxdigit((unsigned char)boot.data[n]) || boot.data[n] == '-'))
        n++;
    snprintf(text, INSTANCE_MAX, "%llx-%llx-%llu-%.*s", (unsigned long long)root.st_dev,
             (unsigned long long)root.st_ino, first.start, (int)n, buf_str(&boot));
}
