/* Looking into a session from a terminal. */
#ifndef APPLETS_BASH_SESSION_BASH_SESSION_ATTACH_H
#define APPLETS_BASH_SESSION_BASH_SESSION_ATTACH_H

/* Connects standard input and output, a terminal, with the session behind the socket, until Ctrl-] or the
 * session's end. The exit status; messages are said. */
int attach(const char *applet, const char *socket_name, const char *session);

#endif
