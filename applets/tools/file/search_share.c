#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "tools/file/search.h"

enum { SHARED_FROM = 512, TURN = 64 }; /* files: a small tree is searched before a process has begun */

struct search_match {
    unsigned long long file;
    size_t n;
};

/* What a process says of its share, before its matches. */
struct report {
    struct search_files files;
    bool full, late;
    size_t n;
};

/* ---- matches ---- */

size_t search_begin_match(struct search *s)
{
    const struct search_match m = {.file = s->share.file};
    size_t at = s->found.len;
    buf_add(&s->found, &m, sizeof m);
    return at;
}

void search_end_match(struct search *s, size_t at)
{
    struct search_match m = {.file = s->share.file, .n = s->found.len - at - sizeof m};
    memcpy(s->found.data + at, &m, sizeof m);
}

/* ---- shares ---- */

static void begin_share(struct search *s, unsigned which, unsigned of, int out)
{
    s->share.mine = which;
    s->share.of = of;
    s->share.pipes[0] = out;
    s->files = (struct search_files){0};
    buf_truncate(&s->found, 0);
}

static void give_up(struct search_share *h)
{
    for (unsigned i = 1; i < h->of; i++) {
        kill(h->pids[i], SIGKILL);
        close(h->pipes[i]);
        while (waitpid(h->pids[i], NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    h->of = 1;
}

/* From here on in as many processes as there are processors, each in the middle of the walk. */
static void share_out(struct search *s)
{
    struct search_share *h = &s->share;
    long most = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned of = most > SEARCH_PROCESSES ? SEARCH_PROCESSES : most > 1 ? (unsigned)most : 1;
    pid_t parent = getpid();
    for (unsigned i = 1; i < of; i++) {
        int ends[2];
        pid_t pid = pipe2(ends, O_CLOEXEC) < 0 ? -1 : fork();
        if (pid == 0) {
            close(ends[0]);
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(1);
            begin_share(s, i, of, ends[1]);
            return;
        }
        if (pid < 0) {
            give_up(h);
            return;
        }
        close(ends[1]);
        h->pids[i] = pid;
        h->pipes[i] = ends[0];
        h->of = i + 1;
    }
}

bool search_is_mine(struct search *s)
{
    struct search_share *h = &s->share;
    if (++h->file == SHARED_FROM && !h->alone)
        share_out(s);
    return h->file / TURN % h->of == h->mine;
}

/* ---- together ---- */

static _Noreturn void report(const struct search *s)
{
    const struct report r = {.files = s->files, .full = s->full, .late = s->late, .n = s->found.len};
    int out = s->share.pipes[0];
    int rc = io_write_all(out, &r, sizeof r);
    if (rc == 0)
        rc = io_write_all(out, buf_str(&s->found), s->found.len);
    _exit(rc < 0);
}

static int take_report(struct search *s, struct buf *all)
{
    struct report r;
    if (all->len < sizeof r)
        return -1;
    memcpy(&r, all->data, sizeof r);
    if (all->len != sizeof r + r.n)
        return -1;
    s->files.searched += r.files.searched;
    s->files.binary += r.files.binary;
    s->files.large += r.files.large;
    s->files.unreadable += r.files.unreadable;
    s->full = s->full || r.full;
    s->late = s->late || r.late;
    buf_consume(all, sizeof r);
    return 0;
}

static bool next_of(const struct buf *b, size_t at, struct search_match *m)
{
    if (at >= b->len)
        return false;
    memcpy(m, b->data + at, sizeof *m);
    return true;
}

/* In the order of the files, as many as are wanted. */
static void merge(struct search *s, const struct buf *lists, struct buf *answer)
{
    size_t at[SEARCH_PROCESSES] = {0}, begin = answer->len;
    for (long long left = s->seek->limit;; left--) {
        struct search_match m, first = {.file = ~0ULL};
        unsigned from = SEARCH_PROCESSES;
        for (unsigned i = 0; i < s->share.of; i++)
            if (next_of(&lists[i], at[i], &m) && m.file < first.file) {
                first = m;
                from = i;
            }
        if (from == SEARCH_PROCESSES)
            return;
        if (left <= 0 || answer->len > SEARCH_OUTPUT_MAX) {
            s->full = true;
            return;
        }
        if (answer->len > begin)
            buf_addc(answer, ',');
        buf_add(answer, lists[from].data + at[from] + sizeof m, first.n);
        at[from] += sizeof m + first.n;
    }
}

int search_gather(struct search *s, struct buf *answer)
{
    struct search_share *h = &s->share;
    struct buf lists[SEARCH_PROCESSES] = {s->found};
    int rc = 0;
    if (h->mine > 0)
        report(s);
    for (unsigned i = 1; i < h->of; i++) {
        buf_init(&lists[i], BUF_NO_MAX);
        if (io_read_all(h->pipes[i], &lists[i]) < 0 || take_report(s, &lists[i]) < 0)
            rc = -1;
    }
    if (rc == 0)
        merge(s, lists, answer);
    for (unsigned i = 1; i < h->of; i++)
        buf_release(&lists[i]);
    give_up(h);
    return rc;
}
