/* The least that an MCP server can do: answers each line with the id that it finds in it, as the result too;
 * with "n":N in it the result is a string of N bytes instead. mcpecho COUNT: only when COUNT requests are
 * there, and then in reverse. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT_MAX 1000
#define ID_MAX 32

static void put(const char *data, size_t n)
{
    while (n > 0) {
        ssize_t sent = write(STDOUT_FILENO, data, n);
        if (sent <= 0)
            _exit(1);
        data += sent;
        n -= (size_t)sent;
    }
}

static void answer(const char *id, unsigned long long n)
{
    static char bytes[65536];
    char text[ID_MAX * 2 + 64];
    if (n == 0) {
        put(text,
            (size_t)snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", id, id));
        return;
    }
    memset(bytes, 'x', sizeof bytes);
    put(text, (size_t)snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":\"", id));
    for (; n > sizeof bytes; n -= sizeof bytes)
        put(bytes, sizeof bytes);
    put(bytes, (size_t)n);
    put("\"}\n", 3);
}

int main(int argc, char **argv)
{
    static char ids[COUNT_MAX][ID_MAX], line[65536];
    int count = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1, waiting = 0;
    size_t have = 0;
    for (ssize_t got; (got = read(STDIN_FILENO, line + have, sizeof line - 1 - have)) > 0;) {
        have += (size_t)got;
        line[have] = '\0';
        for (char *end; (end = strchr(line, '\n'));) {
            *end = '\0';
            const char *id = strstr(line, "\"id\":"), *n = strstr(line, "\"n\":");
            size_t len = id ? strcspn(id + 5, ",}") : 0;
            if (len > 0 && len < ID_MAX) {
                memcpy(ids[waiting], id + 5, len);
                ids[waiting++][len] = '\0';
            }
            if (waiting == count)
                for (; waiting > 0; waiting--)
                    answer(ids[waiting - 1], n ? strtoull(n + 4, NULL, 10) : 0);
            have -= (size_t)(end + 1 - line);
            memmove(line, end + 1, have + 1);
        }
    }
    return 0;
}
