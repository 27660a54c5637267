/* The least that stands between a connection and a program's pipes: relay SOCKET PROGRAM [ARGUMENT]...
 * listens there, takes one connection, and copies from it to the program's stdin and from its stdout back,
 * until one side ends. */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char bytes[65536];

/* 0 at the end. */
static int copy(int from, int to)
{
    ssize_t n = read(from, bytes, sizeof bytes);
    for (ssize_t done = 0, sent; done < n; done += sent)
        if ((sent = write(to, bytes + done, (size_t)(n - done))) <= 0)
            return 0;
    return n > 0;
}

int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int in[2], out[2], listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (argc < 3 || strlen(argv[1]) >= sizeof address.sun_path || pipe(in) < 0 || pipe(out) < 0)
        return 2;
    memcpy(address.sun_path, argv[1], strlen(argv[1]) + 1);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 1) < 0)
        return 1;
    if (fork() == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        for (int i = 0; i < 2; i++) {
            close(in[i]);
            close(out[i]);
        }
        close(listener);
        execv(argv[2], argv + 2);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    int client = accept(listener, NULL, NULL);
    struct pollfd wait[2] = {{client, POLLIN, 0}, {out[0], POLLIN, 0}};
    while (poll(wait, 2, -1) > 0)
        if ((wait[0].revents && !copy(client, in[1])) || (wait[1].revents && !copy(out[0], client)))
            break;
    return 0;
}
