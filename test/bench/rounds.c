/* Times short commands against each other: rounds ROUNDS COMMAND [++ COMMAND]...
 *
 * COMMAND: [-i FILE]... [-e TEXT] [-a SCRIPT] WORD...
 *   -i  the file (64 KiB at most) is its standard input, otherwise that is empty; of several, each round
 * takes the next -e  what it prints must hold this text -a  run by the shell after each time, outside of the
 * time
 *
 * The commands of a round run one after the other, and each round begins with another one, so that whatever
 * else the machine does falls on all of them alike. A command's time goes from before its process is made
 * (vfork and exec, with pipes for input and output) until its output is read to the end and it has been
 * waited for.
 *
 * Prints a line for each command: FAILURES PEAK_KB NANOSECONDS... (the highest peak of its resident memory;
 * the time of each round). A wrong exit status or output is a failure; the first one is told on stderr. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMMANDS_MAX 8
#define INPUTS_MAX 4
#define INPUT_MAX 65536 /* a pipe holds it: it is written before the process is made */
#define OUTPUT_MAX (4u << 20)

struct input {
    char *data;
    size_t len;
};

struct command {
    char **argv;
    struct input inputs[INPUTS_MAX];
    size_t n_inputs;
    const char *expected, *after;
    long failures, peak_kb;
    long long *ns;
};

static char output[OUTPUT_MAX];
static size_t output_len;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "rounds: %s: %s\n", what, strerror(errno));
    exit(1);
}

static _Noreturn void usage(void)
{
    fputs("usage: rounds ROUNDS [-i FILE]... [-e TEXT] [-a SCRIPT] WORD... [++ ...]\n", stderr);
    exit(2);
}

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* ---- the command line ---- */

static struct input load(const char *path)
{
    static char bytes[INPUT_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    struct input in = {n < 0 ? NULL : malloc((size_t)n + 1), (size_t)n};
    if (!in.data)
        fail(path);
    close(fd);
    memcpy(in.data, bytes, in.len);
    return in;
}

/* Reads one command; returns what is behind its "++", NULL at the end. */
static char **parse(char **argv, struct command *c, size_t rounds)
{
    for (; argv[0] && argv[0][0] == '-' && argv[1]; argv += 2) {
        if (strcmp(argv[0], "-i") == 0 && c->n_inputs < INPUTS_MAX)
            c->inputs[c->n_inputs++] = load(argv[1]);
        else if (strcmp(argv[0], "-e") == 0)
            c->expected = argv[1];
        else if (strcmp(argv[0], "-a") == 0)
            c->after = argv[1];
        else
            usage();
    }
    c->argv = argv;
    c->ns = calloc(rounds, sizeof *c->ns);
    if (!c->ns)
        fail("memory");
    while (*argv && strcmp(*argv, "++") != 0)
        argv++;
    if (argv == c->argv)
        usage();
    if (!*argv)
        return NULL;
    *argv = NULL;
    return argv + 1;
}

/* ---- one run ---- */

static void make_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) < 0)
        fail("pipe");
}

static void read_output(int fd)
{
    static char rest[4096];
    output_len = 0;
    for (;;) {
        size_t room = OUTPUT_MAX - output_len;
        ssize_t n = room > 0 ? read(fd, output + output_len, room) : read(fd, rest, sizeof rest);
        if (n == 0 || (n < 0 && errno != EINTR))
            return;
        if (n > 0 && room > 0)
            output_len += (size_t)n;
    }
}

static void check(struct command *c, int status)
{
    if (status == 0 && (!c->expected || memmem(output, output_len, c->expected, strlen(c->expected))))
        return;
    if (c->failures++ == 0)
        fprintf(stderr, "rounds: %s: wait status %d, output: %.*s\n", c->argv[0], status,
                (int)(output_len < 500 ? output_len : 500), output);
}

/* The time it took, in nanoseconds. */
static long long run(struct command *c, size_t round)
{
    int in[2], out[2], status;
    struct rusage used;
    pid_t pid;
    posix_spawn_file_actions_t actions;
    make_pipe(in);
    make_pipe(out);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    const struct input *input = c->n_inputs > 0 ? &c->inputs[round % c->n_inputs] : NULL;
    if (input && write(in[1], input->data, input->len) != (ssize_t)input->len)
        fail("pipe");
    close(in[1]);
    long long start = now_ns();
    errno = posix_spawn(&pid, c->argv[0], &actions, NULL, c->argv, environ);
    if (errno)
        fail(c->argv[0]);
    close(out[1]);
    read_output(out[0]);
    while (wait4(pid, &status, 0, &used) < 0)
        if (errno != EINTR)
            fail("wait");
    long long time = now_ns() - start;
    close(in[0]);
    close(out[0]);
    posix_spawn_file_actions_destroy(&actions);
    check(c, status);
    if (used.ru_maxrss > c->peak_kb)
        c->peak_kb = used.ru_maxrss;
    return time;
}

static void run_after(const char *script)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    pid_t pid;
    int status;
    errno = posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ);
    if (errno || waitpid(pid, &status, 0) != pid || status != 0)
        fail(script);
}

int main(int argc, char **argv)
{
    static struct command commands[COMMANDS_MAX];
    size_t n = 0, rounds = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
    if (rounds == 0)
        usage();
    for (char **next = argv + 2; next; n++) {
        if (n == COMMANDS_MAX)
            usage();
        next = parse(next, &commands[n], rounds);
    }
    size_t warm_up = rounds < 30 ? 1 : 3; /* rounds before those that count */
    for (size_t round = 0; round < rounds + warm_up; round++) {
        for (size_t i = 0; i < n; i++) {
            struct command *c = &commands[(round + i) % n];
            long long ns = run(c, round);
            if (round >= warm_up)
                c->ns[round - warm_up] = ns;
            if (c->after)
                run_after(c->after);
        }
    }
    for (size_t i = 0; i < n; i++) {
        printf("%ld %ld", commands[i].failures, commands[i].peak_kb);
        for (size_t round = 0; round < rounds; round++)
            printf(" %lld", commands[i].ns[round]);
        printf("\n");
    }
    return 0;
}
