/* usage: forkexec N PROGRAM
 * Forks, executes the program and waits for it, N times; prints the median and the least of the microseconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int n = argc == 3 ? atoi(argv[1]) : 0;
    double *took = n > 0 ? calloc((size_t)n, sizeof *took) : NULL;
    for (int i = 0; took && i < n; i++) {
        int status;
        double began = now();
        pid_t pid = fork();
        if (pid == 0) {
            execl(argv[2], argv[2], (char *)NULL);
            _exit(127);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
            free(took);
            return 1;
        }
        took[i] = now() - began;
    }
    if (!took)
        return 2;
    qsort(took, (size_t)n, sizeof *took, order);
    printf("%.0f %.0f\n", took[n / 2], took[0]);
    free(took);
    return 0;
}
