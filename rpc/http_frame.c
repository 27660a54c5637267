#include "http_frame.h"

#include <errno.h>
#include <sys/socket.h>

#include "io.h"
#include "mem.h"

#define READ_STEP 65536 /* bytes taken from a socket at a time */

void http_frame_open(struct http_frame *f, struct http_frame **list, struct loop *loop, int fd,
                     void (*on_event)(void *arg, int events), void *arg)
{
    f->fd = fd;
    buf_init(&f->input, BUF_NO_MAX);
    f->link = list;
    f->next = *list;
    if (f->next)
        f->next->link = &f->next;
    *list = f;
    f->source = loop_fd(loop, fd, LOOP_READ, on_event, arg);
}

bool http_frame_close(struct http_frame *f)
{
    if (f->closed)
        return false;
    f->closed = true;
    *f->link = f->next;
    if (f->next)
        f->next->link = f->link;
    loop_drop(&f->source);
    loop_drop(&f->timer);
    io_close(&f->fd);
    http_parser_release(&f->parser);
    buf_release(&f->input);
    return true;
}

ssize_t http_frame_read(struct http_frame *f, const char **data)
{
    /* On the stack -fstack-clash-protection would touch every page of it. */
    static MEM_LARGE char bytes[READ_STEP];
    ssize_t n = recv(f->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    *data = bytes;
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? HTTP_FRAME_NOTHING : n;
}

static void send_continue(struct http_frame *f)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    f->parser.expects = false;
    if (send(f->fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* full of answers that the client doesn't read: it will send the body without */
}

size_t http_frame_parse(struct http_frame *f, const char *data, size_t n)
{
    size_t taken = http_parse(&f->parser, data, n);
    if (f->parser.expects && f->parser.state != HTTP_COMPLETE && f->parser.state != HTTP_REFUSED)
        send_continue(f);
    return taken;
}

bool http_frame_lost(ssize_t n)
{
    return n < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS && errno != ENOMEM;
}

const char *http_reason(int status)
{
    static const struct {
        int status;
        char text[32]; /* no pointer: those take room on the page that each start puts right */
    } reasons[] = {
        {200, "OK"},
        {202, "Accepted"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {411, "Length Required"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {426, "Upgrade Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return status < 500 ? "Client Error" : "Server Error";
}
