/* A job's terminal, in the place of its pipes: echo, newlines and keys as a person has them. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "io.h"
#include "job_internal.h"
#include "pty.h"

int job_open_terminal(const struct job_options *o, int pipes[3][2], struct err *err)
{
    struct pty p;
    if (pty_open(&p, o->rows, o->cols, o->user, err) < 0)
        return -1;
    pipes[0][1] = p.master;
    pipes[0][0] = p.slave;
    int *copies[] = {&pipes[1][0], &pipes[1][1], &pipes[2][1]};
    for (int i = 0; i < 3; i++) {
        *copies[i] = fcntl(i == 0 ? p.master : p.slave, F_DUPFD_CLOEXEC, 0);
        if (*copies[i] < 0)
            return err_sys(err, ERR_TOOL, errno, "cannot open a terminal");
    }
    pty_make_plain(&p);
    return 0;
}

/* A key that ends input at the beginning of a line only delivers what is there elsewhere. */
void job_type_end(struct job *j)
{
    char key = pty_end_key(j->in.fd);
    fifo_add(&j->in.pending, &key, 1);
    if (j->in.open_line)
        fifo_add(&j->in.pending, &key, 1);
}

int job_resize(struct job *j, unsigned short rows, unsigned short cols, struct err *err)
{
    struct pty p = {.master = j->in.fd};
    if (!j->terminal)
        return err_set(err, ERR_TOOL, "job %ld has no terminal; start it with pty", (long)j->pid);
    if (j->reaped || p.master < 0)
        return err_set(err, ERR_TOOL, "job %ld has ended", (long)j->pid);
    return pty_resize(&p, rows, cols) == 0 ? 0 : err_sys(err, ERR_TOOL, errno, "cannot resize the terminal");
}
